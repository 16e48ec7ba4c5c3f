-- purpose: what may be known of a secret
-- caller: store.secrets
-- transition: none
-- fence: none
-- index: secrets_pkey
select s.name, s.version, s.created_at, s.updated_at
  from foliot.secrets s
 where s.tenant_id = $1::uuid and s.name = $2::text;
