-- purpose: write the outcomes of a worker's attempts, in one batch of any mixture
-- caller: store.finishing
-- transition: execution SUCCEED: RUNNING -> SUCCEEDED, execution FAIL: RUNNING -> FAILED,
--   execution TIME_OUT: RUNNING -> TIMED_OUT, execution CANCEL: RUNNING -> CANCELLED,
--   execution RETRY: RUNNING -> RETRYING, execution SNOOZE: RUNNING -> PENDING,
--   execution HAND_BACK: RUNNING -> QUEUED, execution HOLD: RUNNING -> WAITING
-- fence: id, fence, worker_id
-- index: executions_pkey
--
-- All went as told, unless they are fewer: then those that were written are named, and always what was
-- CANCELLED. To read a thousand names takes a worker as long as to write the rest of the call.
select count(*) as written, array_agg(id) filter (where status = 'CANCELLED') as cancelled,
       case when count(*) < cardinality($2::uuid[]) then array_agg(id) end as ids
  from foliot.finish($1::uuid, $2::uuid[], $3::integer[], $4::text[], $5::text[], $6::boolean[],
                     $7::text[], $8::text[], $9::timestamptz[], $10::float8[], $11::text[],
                     $12::text[], $13::timestamptz);
