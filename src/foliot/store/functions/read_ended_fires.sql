-- purpose: a page of each job's history, the earliest end first, and which of it is the end of a scheduled
--   execution
-- caller: sql ledger/read_ended
-- transition: none
-- fence: none
-- index: attempts_job, executions_pkey
--
-- A page begins after a moment, and what ended in the last moment of a page belongs to it. Nothing is left out
-- here, so that a page is read in the same time whatever the job is triggered by. What is over and live in one
-- snapshot was fired twice: a finish removes the one and adds the other.
create or replace function foliot.read_ended_fires(
  p_job_ids uuid[], p_after timestamptz[], p_limit integer
) returns table (
  job_id uuid, id uuid, job_version integer, scheduled_time timestamptz, finished_at timestamptz,
  is_outcome boolean, is_live boolean
)
language plpgsql stable rows 1000
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return query
  select w.job_id, a.id, a.job_version, a.scheduled_time, a.finished_at, a.is_outcome,
         a.is_outcome and exists (select from foliot.executions e where e.id = a.id offset 0)
    from unnest(p_job_ids, p_after) w(job_id, after)
   cross join lateral (
         select a.id, a.job_version, a.scheduled_time, a.finished_at,
                a.final and a.trigger = 'SCHEDULE' as is_outcome
           from foliot.attempts a
          where a.job_id = w.job_id and a.finished_at > w.after
          order by a.finished_at fetch first (p_limit) rows with ties) a;
end
$$;
