-- purpose: start the oldest execution that a job's overlap policy held, once nothing of the job is under way
-- caller: store.releasing
-- transition: execution RELEASE: WAITING -> QUEUED
-- fence: status, hold
-- index: executions_overlap
select released, last
  from foliot.release_overlaps($1::uuid, $2::integer, $3::timestamptz);
