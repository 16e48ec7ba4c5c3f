-- purpose: a worker has stopped; whatever still names it is rescued at once
-- caller: store.workers
-- transition: worker DIE: ACTIVE -> DEAD, worker DIE: DRAINING -> DEAD
-- fence: id, status
-- index: workers_pkey
update foliot.workers set status = 'DEAD', started = $2::uuid[]
 where id = $1::uuid and status <> 'DEAD';
