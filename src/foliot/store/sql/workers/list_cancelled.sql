-- purpose: what a worker holds and is asked to stop, for those who will not wait for its next heartbeat
-- caller: store.workers
-- transition: none
-- fence: worker_id
-- index: executions_worker
select e.id, e.fence
  from foliot.executions e
 where e.worker_id = $1::uuid and e.cancel_requested_at is not null
 order by e.id;
