-- purpose: the same signing key under another key
-- caller: store.signing_keys
-- transition: none
-- fence: nonce
-- index: signing_keys_pkey
update foliot.signing_keys k
   set key_id = $4::text, nonce = $5::bytea, ciphertext = $6::bytea
 where k.tenant_id = $1::uuid and k.number = $2::integer and k.nonce = $3::bytea;
