-- purpose: remember a migration, in the transaction that carried it out
-- caller: store.migrate
-- transition: none
-- fence: version
-- index: schema_migrations_pkey
insert into foliot.schema_migrations (version, name, checksum, applied_at)
values ($1, $2, $3, coalesce($4::timestamptz, statement_timestamp()));
