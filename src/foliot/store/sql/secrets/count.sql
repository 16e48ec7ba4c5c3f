-- purpose: how many secrets a tenant has
-- caller: store.secrets
-- transition: none
-- fence: none
-- index: secrets_pkey
select count(*) from foliot.secrets s where s.tenant_id = $1::uuid;
