-- purpose: what a worker holds and is asked to stop, for those who will not wait for its next heartbeat
-- caller: store.workers
-- transition: none
-- fence: worker_id
-- index: executions_pkey
--
-- Of what it names, by the key: among the entries of the worker lie those of all that it has finished, and
-- under a pinned snapshot they stay.
select e.id, e.fence
  from foliot.executions e
 where e.id = any($2::uuid[]) and e.worker_id is not distinct from $1::uuid
   and e.cancel_requested_at is not null
 order by e.id;
