-- purpose: a page of each job's scheduled executions that are not over, in the order of their instants
-- caller: sql ledger/read_live
-- transition: none
-- fence: none
-- index: executions_job
--
-- A page begins after an instant. What shares the last instant of a page belongs to it.
create or replace function foliot.read_live_fires(
  p_job_ids uuid[], p_after timestamptz[], p_limit integer
) returns table (job_id uuid, id uuid, job_version integer, scheduled_time timestamptz)
language plpgsql stable rows 1000
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return query
  select w.job_id, e.id, e.job_version, e.scheduled_time
    from unnest(p_job_ids, p_after) w(job_id, after)
   cross join lateral (
         select e.id, e.job_version, e.scheduled_time from foliot.executions e
          where e.job_id = w.job_id and e.trigger = 'SCHEDULE' and e.scheduled_time > w.after
          order by e.scheduled_time fetch first (p_limit) rows with ties) e;
end
$$;
