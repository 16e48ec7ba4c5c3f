-- purpose: how many workers serve a tenant
-- caller: store.fleet
-- transition: none
-- fence: none
-- index: none
select count(*) from foliot.workers w
 where (w.tenant_id is null or w.tenant_id = $1::uuid) and w.capacity > 0
   and ($2::text[] is null or w.status = any($2));
