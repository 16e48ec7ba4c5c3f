-- purpose: a secret, new or in its next version; no row if another version came in between
-- caller: store.secrets
-- transition: none
-- fence: version
-- index: secrets_pkey
--
-- The version is part of the seal, so it must be known before the row is written. The arguments are
-- named once more: reading them as `excluded` would take the right to read the columns.
insert into foliot.secrets as s (tenant_id, name, version, key_id, nonce, ciphertext, created_at, updated_at)
values ($1::uuid, $2::text, $3::integer, $4::text, $5::bytea, $6::bytea,
        coalesce($7::timestamptz, statement_timestamp()), coalesce($7::timestamptz, statement_timestamp()))
    on conflict (tenant_id, name) do update
   set version = $3, key_id = $4, nonce = $5, ciphertext = $6,
       updated_at = coalesce($7::timestamptz, statement_timestamp())
 where s.version = $3 - 1
returning s.name, s.version, s.created_at, s.updated_at;
