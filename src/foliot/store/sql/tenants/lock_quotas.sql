-- purpose: what a tenant's quotas say, until its limits are as they say
-- caller: store.tenant_limits
-- transition: none
-- fence: none
-- index: tenants_pkey
select t.quotas from foliot.tenants t where t.id = $1::uuid for no key update;
