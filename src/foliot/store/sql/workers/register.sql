-- purpose: a worker that has just started, under an id that nobody had before
-- caller: store.workers
-- transition: none
-- fence: none
-- index: workers_pkey
insert into foliot.workers
       (id, tenant_id, name, host, version, status, queues, labels, region, handlers, target_types,
        capacity, registered_at, last_heartbeat_at)
select $1::uuid, $2::uuid, $3::text, $4::text, $5::text, 'ACTIVE', $6::text[], $7::text[], $8::text,
       $9::text[], $10::text[], $11::integer, t.now, t.now
  from (select coalesce($12::timestamptz, statement_timestamp()) as now) t;
