-- purpose: end what nobody started before its start deadline
-- caller: store.expiring
-- transition: execution EXPIRE: PENDING -> FAILED, execution EXPIRE: WAITING -> FAILED,
--   execution EXPIRE: QUEUED -> FAILED, execution EXPIRE: RETRYING -> FAILED
-- fence: worker_id is null
-- index: executions_start_by
select id from foliot.expire($1::integer, $2::jsonb, $3::text, $4::timestamptz);
