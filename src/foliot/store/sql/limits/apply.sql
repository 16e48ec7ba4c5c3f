-- purpose: give a limit's key to a page of the rows that came before the limit
-- caller: store.limit_changes
-- transition: execution HOLD: QUEUED -> WAITING
-- fence: under the lock of each row
-- index: executions_pkey, executions_job
select changed, last from foliot.apply_limit($1::text, $2::uuid, $3::integer);
