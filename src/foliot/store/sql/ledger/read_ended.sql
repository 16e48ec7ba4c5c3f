-- purpose: a page of each job's history, the earliest end first, and which of it is the end of a scheduled
--   execution
-- caller: store.ledger_rows
-- transition: none
-- fence: none
-- index: attempts_job
select job_id, id, job_version, scheduled_time, finished_at, is_outcome, is_live
  from foliot.read_ended_fires($1::uuid[], $2::timestamptz[], $3::integer);
