-- purpose: the same value of a secret under another key
-- caller: store.secrets
-- transition: none
-- fence: version, nonce
-- index: secrets_pkey
update foliot.secrets s
   set key_id = $5::text, nonce = $6::bytea, ciphertext = $7::bytea
 where s.tenant_id = $1::uuid and s.name = $2::text and s.version = $3::integer and s.nonce = $4::bytea;
