-- purpose: does the database answer, what time is it there, how far is it migrated, may we write
-- caller: store.readiness
-- transition: none
-- fence: none
-- index: schema_migrations_pkey
select coalesce($1::timestamptz, clock_timestamp()) as now,
       (select coalesce(max(version), 0) from foliot.schema_migrations) as level,
       not pg_is_in_recovery() as writable;
