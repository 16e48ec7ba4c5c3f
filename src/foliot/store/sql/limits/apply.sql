-- purpose: let a limit count for a page of the rows that came before it
-- caller: store.limit_changes
-- transition: execution HOLD: QUEUED -> WAITING, execution RELEASE: WAITING -> QUEUED
-- fence: under the lock of each row
-- index: executions_pkey, executions_job
select changed, last, passed_over, queues
  from foliot.apply_limit($1::text, $2::uuid, $3::integer, $4::timestamptz);
