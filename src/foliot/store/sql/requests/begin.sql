-- purpose: keep a request's key before its work begins, or say what is known of the key
-- caller: store.request_keys
-- transition: none
-- fence: idempotency_keys_pkey
-- index: idempotency_keys_pkey
--
-- A key that is a day old is free again. Without any row, whoever had the key has just committed or
-- forgotten it: ask again. `abandoned` says that whoever was at work on it has given up, or cannot be
-- at it any more.
with told as (
  select coalesce($5::timestamptz, statement_timestamp()) as now),
begun as (
  insert into foliot.idempotency_keys as k (tenant_id, route, key, request_hash, created_at)
  select $1::uuid, $2::text, $3::text, $4::bytea, t.now from told t
      on conflict (tenant_id, route, key) do update
         set request_hash = excluded.request_hash, created_at = excluded.created_at, answer = null,
             abandoned = false
       where k.created_at <= excluded.created_at - interval '24 hours'
  returning k.created_at)
select true as is_new, false as abandoned, b.created_at, $4::bytea as request_hash, null::jsonb as answer
  from begun b
 union all
select false, k.abandoned or k.created_at < t.now - make_interval(secs => $6::float8), k.created_at,
       k.request_hash, k.answer
  from told t
  join foliot.idempotency_keys k
    on k.tenant_id = $1::uuid and k.route = $2::text and k.key = $3::text
 where not exists (select from begun);
