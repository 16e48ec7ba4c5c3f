-- purpose: the secrets that an attempt asks for, sealed
-- caller: store.secrets
-- transition: none
-- fence: none
-- index: secrets_pkey
select s.name, s.version, s.key_id, s.nonce, s.ciphertext
  from unnest($2::text[]) x(name)
 cross join lateral (select s.* from foliot.secrets s
                      where s.tenant_id = $1::uuid and s.name = x.name
                     offset 0) s;
