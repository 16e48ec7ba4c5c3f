-- purpose: finish a deletion whose node died: cancel what still waits of a job that was deleted
-- caller: sql jobs/cancel_deleted
-- transition: none
-- fence: worker_id is null
-- index: executions_job, jobs_pkey
--
-- The walk leaps from job to job over what is live, `p_steps` a call, and ends with the first job of which
-- something was cancelled: rows of two jobs are never locked together. `last` is where to go on, null at the
-- end; a job of which more may wait is met again.
create or replace function foliot.cancel_deleted(
  p_after uuid, p_steps integer, p_limit integer, p_now timestamptz
) returns table (cancelled bigint, last uuid)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  moment timestamptz := coalesce(p_now, statement_timestamp());
  place uuid := coalesce(p_after, '00000000-0000-0000-0000-000000000000');
  next_job uuid;
begin
  cancelled := 0;
  for step in 1 .. p_steps loop
    next_job := (select e.job_id from foliot.executions e where e.job_id > place
                  order by e.job_id limit 1);
    exit when next_job is null;
    if exists (select from foliot.jobs j where j.id = next_job and j.status = 'DELETED') then
      cancelled := foliot.cancel_waiting(next_job, p_limit, moment);
      exit when cancelled >= p_limit;
    end if;
    place := next_job;
    exit when cancelled > 0;
  end loop;
  last := case when next_job is not null then place end;
  return next;
end
$$;
