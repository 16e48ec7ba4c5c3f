-- purpose: a worker lives, and says what it has begun; what the tables think it holds comes back
-- caller: store.workers
-- transition: none
-- fence: id, status
-- index: workers_pkey, executions_worker, executions_pkey
--
-- What it may hold without knowing it, a claim whose reply was lost, it claimed since about its last beat;
-- further back lie the dead entries of all that it has finished, and under a pinned snapshot they stay.
with before as materialized (
  select w.last_heartbeat_at - interval '60 s' as low from foliot.workers w where w.id = $1::uuid),
beat as (
  update foliot.workers w
     set last_heartbeat_at = greatest(w.last_heartbeat_at,
                                      coalesce($3::timestamptz, statement_timestamp())),
         started = $2::uuid[]
   where w.id = $1::uuid and w.status <> 'DEAD'
  returning w.status)
select b.status, h.ids, h.fences, h.cancelled
  from beat b
 cross join lateral (
       select coalesce(array_agg(e.id order by e.id), '{}') as ids,
              coalesce(array_agg(e.fence order by e.id), '{}') as fences,
              coalesce(array_agg(e.cancel_requested_at is not null order by e.id), '{}') as cancelled
         from (select e.id, e.fence, e.cancel_requested_at from foliot.executions e
                where e.worker_id = $1::uuid and e.claimed_at >= (select f.low from before f)
                union
               select e.id, e.fence, e.cancel_requested_at from foliot.executions e
                where e.id = any($2::uuid[]) and e.worker_id is not distinct from $1::uuid) e) h;
