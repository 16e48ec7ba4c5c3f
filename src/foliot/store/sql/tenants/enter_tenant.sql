-- purpose: from here to the end of the transaction, be one tenant and see only its rows
-- caller: store.tenancy
-- transition: none
-- fence: none
-- index: none
select set_config('foliot.tenant_id', $1::uuid::text, true),
       set_config('role', 'foliot_tenant', true);
