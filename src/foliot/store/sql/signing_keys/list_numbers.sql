-- purpose: what may be known of a tenant's signing keys, the newest first
-- caller: store.signing_keys
-- transition: none
-- fence: none
-- index: signing_keys_pkey
select k.number, k.created_at, k.ends_at
  from foliot.signing_keys k
 where k.tenant_id = $1::uuid
 order by k.number desc;
