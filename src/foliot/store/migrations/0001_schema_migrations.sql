-- Everything of Foliot lives in a schema of its own, always named in full: it can share a database
-- with an application (and a transaction with its rows) without meeting its `jobs` table, and no
-- statement depends on a search_path. The schema may exist already, made by an administrator for a
-- role that may not create one.
do $$
begin
  if not exists (select from pg_catalog.pg_namespace where nspname = 'foliot') then
    create schema foliot;
  end if;
end
$$;

create table foliot.schema_migrations (
  version    integer     primary key,
  name       text        not null,
  checksum   text        not null,
  applied_at timestamptz not null
);

-- Functions follow their files: these are the ones the last migrating node had.
create table foliot.schema_functions (
  name       text        primary key,
  checksum   text        not null,
  signature  text        not null, -- checksum of what stands before the body
  applied_at timestamptz not null
);
