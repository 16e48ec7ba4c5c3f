-- purpose: cancel what waits of a job that was deleted; what runs may finish
-- caller: store.jobs
-- transition: execution CANCEL: PENDING -> CANCELLED, execution CANCEL: WAITING -> CANCELLED,
--   execution CANCEL: QUEUED -> CANCELLED, execution CANCEL: RETRYING -> CANCELLED
-- fence: worker_id is null
-- index: executions_job
select foliot.cancel_waiting($1::uuid, $2::integer, $3::timestamptz);
