-- purpose: a page of all secrets, sealed, for the change to another key
-- caller: store.secrets
-- transition: none
-- fence: none
-- index: secrets_pkey
select s.tenant_id, s.name, s.version, s.key_id, s.nonce, s.ciphertext
  from foliot.secrets s
 where (s.tenant_id, s.name) > ($1::uuid, $2::text)
 order by s.tenant_id, s.name
 limit $3::integer;
