-- purpose: finish a deletion whose node died: cancel what still waits of a job that was deleted
-- caller: store.job_deletions
-- transition: execution CANCEL: PENDING -> CANCELLED, execution CANCEL: WAITING -> CANCELLED,
--   execution CANCEL: QUEUED -> CANCELLED, execution CANCEL: RETRYING -> CANCELLED
-- fence: worker_id is null
-- index: executions_job
select cancelled, last
  from foliot.cancel_deleted($1::uuid, $2::integer, $3::integer, $4::timestamptz);
