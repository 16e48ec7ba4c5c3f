-- purpose: start the oldest execution that a job's overlap policy held, once nothing of the job is under way
-- caller: store.releasing
-- transition: execution RELEASE: WAITING -> QUEUED
-- fence: status, hold
-- index: executions_overlap
select r.released, r.last,
       (select array_agg(distinct e.queue) from unnest(r.released) x(id)
         cross join lateral (select e.queue from foliot.executions e where e.id = x.id offset 0) e) as queues
  from foliot.release_overlaps($1::uuid, $2::integer, $3::timestamptz) r;
