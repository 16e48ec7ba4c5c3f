-- purpose: a request may have been carried out, and nobody is left to say so: the next copy of it finds out
-- caller: store.request_keys
-- transition: none
-- fence: created_at, answer is null
-- index: idempotency_keys_pkey
update foliot.idempotency_keys k
   set abandoned = true
 where k.tenant_id = $1::uuid and k.route = $2::text and k.key = $3::text
   and k.created_at = $4::timestamptz and k.answer is null;
