-- purpose: a request came to nothing: its key is free for the next try
-- caller: store.request_keys
-- transition: none
-- fence: created_at, answer is null
-- index: idempotency_keys_pkey
delete from foliot.idempotency_keys k
 where k.tenant_id = $1::uuid and k.route = $2::text and k.key = $3::text
   and k.created_at = $4::timestamptz and k.answer is null;
