-- purpose: remember a function, in the transaction that created it
-- caller: store.install_functions
-- transition: none
-- fence: name
-- index: schema_functions_pkey
insert into foliot.schema_functions (name, checksum, signature, applied_at)
values ($1, $2, $3, coalesce($4::timestamptz, statement_timestamp()))
    on conflict (name) do update
   set checksum = excluded.checksum, signature = excluded.signature, applied_at = excluded.applied_at;
