-- purpose: a new signing key, which ends those before it after a while; no row if somebody was faster
-- caller: store.signing_keys
-- transition: none
-- fence: number
-- index: signing_keys_pkey
--
-- Five sign at once at the most: the sixth ends the oldest. What has ended goes.
with moment as (
  select coalesce($7::timestamptz, statement_timestamp()) as at),
made as (
  insert into foliot.signing_keys as k (tenant_id, number, key_id, nonce, ciphertext, created_at)
  select $1::uuid, $2::integer, $3::text, $4::bytea, $5::bytea, m.at from moment m
      on conflict (tenant_id, number) do nothing
  returning k.number, k.created_at, k.ends_at),
gone as (
  delete from foliot.signing_keys k
   using moment m
   where k.tenant_id = $1::uuid and (k.ends_at <= m.at or k.number <= $2 - 5)
     and exists (select from made)),
ended as (
  update foliot.signing_keys k
     set ends_at = least(k.ends_at, m.at + make_interval(secs => $6::float8))
    from moment m
   where k.tenant_id = $1::uuid and k.number < $2 and k.number > $2 - 5
     and (k.ends_at is null or k.ends_at > m.at)
     and exists (select from made))
select d.number, d.created_at, d.ends_at from made d;
