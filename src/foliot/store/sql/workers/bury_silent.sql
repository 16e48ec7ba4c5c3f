-- purpose: workers that were silent for too long are dead, and no later heartbeat brings them back
-- caller: store.workers
-- transition: worker DIE: ACTIVE -> DEAD, worker DIE: DRAINING -> DEAD
-- fence: last_heartbeat_at, status
-- index: workers_heartbeat
update foliot.workers set status = 'DEAD'
 where status <> 'DEAD'
   and last_heartbeat_at < coalesce($2::timestamptz, statement_timestamp())
                           - make_interval(secs => $1::float8)
returning id;
