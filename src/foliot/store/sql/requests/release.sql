-- purpose: a request came to nothing: its key is free for the next try
-- caller: store.request_keys
-- transition: none
-- fence: created_at, answer is null, abandoned
-- index: idempotency_keys_pkey
--
-- A key that is as old as an abandoned one may be in other hands by now, and their work done. Its age is no
-- condition on the column, for which the keys would be looked up by age.
delete from foliot.idempotency_keys k
 where k.tenant_id = $1::uuid and k.route = $2::text and k.key = $3::text
   and k.created_at = $4::timestamptz and k.answer is null and not k.abandoned
   and $4::timestamptz >= coalesce($5::timestamptz, statement_timestamp()) - make_interval(secs => $6::float8);
