-- purpose: a page of all signing keys, sealed, for the change to another key
-- caller: store.signing_keys
-- transition: none
-- fence: none
-- index: signing_keys_pkey
select k.tenant_id, k.number, k.key_id, k.nonce, k.ciphertext
  from foliot.signing_keys k
 where (k.tenant_id, k.number) > ($1::uuid, $2::integer)
 order by k.tenant_id, k.number
 limit $3::integer;
