-- purpose: whether any migration was ever applied here; asks the catalog and not to_regclass(),
--   whose cached "no" outlives the wait for another node that creates the table meanwhile
-- caller: store.migrate
-- transition: none
-- fence: none
-- index: pg_class_relname_nsp_index
select exists (
  select from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where n.nspname = 'foliot' and c.relname = 'schema_migrations'
);
