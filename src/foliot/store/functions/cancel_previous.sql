-- purpose: when a new instant replaces what runs: cancel the earlier scheduled executions of its job
-- caller: function fire, function follow
-- transition: none
-- fence: none
-- index: executions_pkey, jobs_pkey, executions_job
--
-- `p_moment` is when the new ones were made: what an earlier call made has done its cancelling.
create or replace function foliot.cancel_previous(p_new_ids uuid[], p_moment timestamptz)
returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
as $$
begin
  perform foliot.cancel(
    array(select e.id
            from unnest(p_new_ids) x(id)
           cross join lateral (select n.id, n.job_id from foliot.executions n
                                where n.id = x.id and n.hold is not distinct from 'OVERLAP'
                                  and n.created_at = p_moment offset 0) n
           cross join lateral (select from foliot.jobs j
                                where j.id = n.job_id and j.overlap_policy = 'CANCEL_PREVIOUS' offset 0) j
           cross join lateral (select e.id from foliot.executions e
                                where e.job_id = n.job_id and e.id <> n.id
                                  and e.trigger in ('SCHEDULE', 'AFTER')
                                  and e.cancel_requested_at is null offset 0) e
           order by e.id),
    '{"type": "CANCELLED", "message": "a newer instant of the job took its place"}'::jsonb, p_moment);
end
$$;
