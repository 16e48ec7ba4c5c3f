-- purpose: whether there is such a tenant
-- caller: store.tenants
-- transition: none
-- fence: none
-- index: tenants_pkey
select exists (select from foliot.tenants t where t.id = $1::uuid and t.deleted_at is null);
