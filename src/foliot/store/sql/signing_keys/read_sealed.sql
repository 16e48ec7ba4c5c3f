-- purpose: the keys that sign for a tenant now, sealed, the newest first; and what time it is
-- caller: store.signing_keys
-- transition: none
-- fence: none
-- index: signing_keys_pkey
--
-- There is always a row, with nulls where there is no key.
select m.moment, k.number, k.key_id, k.nonce, k.ciphertext, k.ends_at
  from (select coalesce($2::timestamptz, statement_timestamp()) as moment) m
  left join lateral (
       select k.* from foliot.signing_keys k
        where k.tenant_id = $1::uuid and (k.ends_at is null or k.ends_at > m.moment)
        order by k.number desc
       offset 0) k on true;
