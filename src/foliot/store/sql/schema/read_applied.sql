-- purpose: which migrations this database has, in order
-- caller: store.migrate
-- transition: none
-- fence: none
-- index: schema_migrations_pkey
select version, name, checksum
  from foliot.schema_migrations
 order by version;
