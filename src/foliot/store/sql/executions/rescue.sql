-- purpose: write what was decided about executions that their workers have lost
-- caller: store.rescuing
-- transition: execution LOSE: RUNNING -> QUEUED, execution FAIL: RUNNING -> FAILED,
--   execution TIME_OUT: RUNNING -> TIMED_OUT, execution CANCEL: RUNNING -> CANCELLED,
--   execution RETRY: RUNNING -> RETRYING, execution HAND_BACK: RUNNING -> QUEUED
-- fence: status, id, fence, worker_id
-- index: executions_pkey
select id, status
  from foliot.rescue($1::uuid[], $2::integer[], $3::uuid[], $4::text[], $5::integer[], $6::text[],
                     $7::timestamptz[], $8::float8[], $9::text[], $10::text[], $11::timestamptz);
