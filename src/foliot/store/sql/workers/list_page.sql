-- purpose: a page of the workers that serve a tenant, the newest first, with how much each has in hand
-- caller: store.fleet
-- transition: none
-- fence: none
-- index: executions_worker
select w.id, w.tenant_id, w.name, w.host, w.status, w.capacity, w.queues, w.labels, w.region, w.handlers,
       w.version, w.registered_at, w.last_heartbeat_at,
       (select count(*) from foliot.executions e where e.worker_id = w.id) as current_load
  from foliot.workers w
 where (w.tenant_id is null or w.tenant_id = $1::uuid)
   and w.capacity > 0 -- not the one that stands for HTTP targets
   and ($2::text[] is null or w.status = any($2))
   and (w.registered_at, w.id) < (coalesce($3::timestamptz, 'infinity'),
                                  coalesce($4::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
 order by w.registered_at desc, w.id desc
 limit $5::integer;
