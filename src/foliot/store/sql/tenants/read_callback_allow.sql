-- purpose: what the operator opens to the callbacks of one tenant
-- caller: store.tenants
-- transition: none
-- fence: none
-- index: tenants_pkey
select t.callback_allow from foliot.tenants t where t.id = $1::uuid;
