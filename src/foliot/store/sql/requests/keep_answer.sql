-- purpose: what a request was answered, for those who send it again
-- caller: store.request_keys
-- transition: none
-- fence: created_at, answer is null
-- index: idempotency_keys_pkey
update foliot.idempotency_keys k
   set answer = $5::text::jsonb
 where k.tenant_id = $1::uuid and k.route = $2::text and k.key = $3::text
   and k.created_at = $4::timestamptz and k.answer is null;
