-- purpose: cancel what waits of a job that was deleted; what runs may finish
-- caller: sql jobs/cancel_waiting, function cancel_deleted
-- transition: none
-- fence: worker_id is null
-- index: executions_job
--
-- At most `p_limit`; how many there were. One that is claimed at this very moment is asked to stop.
create or replace function foliot.cancel_waiting(p_job_id uuid, p_limit integer, p_moment timestamptz)
returns bigint
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (select count(*)
            from foliot.cancel(
                   array(select w.id
                           from (select e.id from foliot.executions e
                                  where e.job_id = p_job_id and e.worker_id is null limit p_limit) w
                          order by w.id),
                   '{"type": "CANCELLED", "message": "its job was deleted"}'::jsonb, p_moment));
end
$$;
