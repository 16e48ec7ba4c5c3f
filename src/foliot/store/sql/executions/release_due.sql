-- purpose: let rows go whose time has come
-- caller: store.releasing
-- transition: execution RELEASE: PENDING -> QUEUED, execution RELEASE: RETRYING -> QUEUED,
--   execution RELEASE: WAITING -> QUEUED, execution HOLD: PENDING -> WAITING,
--   execution HOLD: QUEUED -> WAITING, execution HOLD: RETRYING -> WAITING
-- fence: rank is null, status, available_at
-- index: executions_release
select seen, released, held, moment, queues
  from foliot.release($1::timestamptz, $2::integer, $3::timestamptz);
