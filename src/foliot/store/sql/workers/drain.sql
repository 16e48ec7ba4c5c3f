-- purpose: a worker claims nothing more and finishes what it has
-- caller: store.workers
-- transition: worker DRAIN: ACTIVE -> DRAINING
-- fence: id, status
-- index: workers_pkey
update foliot.workers set status = 'DRAINING'
 where id = $1::uuid and status = 'ACTIVE' and capacity > 0;
