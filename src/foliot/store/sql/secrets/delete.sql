-- purpose: a secret is gone; what may be known of it
-- caller: store.secrets
-- transition: none
-- fence: none
-- index: secrets_pkey
delete from foliot.secrets s
 where s.tenant_id = $1::uuid and s.name = $2::text
returning s.name, s.version, s.created_at, s.updated_at;
