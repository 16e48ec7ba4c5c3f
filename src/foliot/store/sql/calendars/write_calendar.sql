-- purpose: a calendar as it is from now on; its version, which is kept
-- caller: store.calendars
-- transition: none
-- fence: under the lock of the calendar
-- index: calendars_pkey
with written as (
  insert into foliot.calendars as c (tenant_id, name, version, definition, updated_at)
  values ($1::uuid, $2::text, 1, $3::text::jsonb, coalesce($4::timestamptz, statement_timestamp()))
      on conflict (tenant_id, name) do update
     set version = c.version + 1, definition = excluded.definition, updated_at = excluded.updated_at
  returning c.*)
insert into foliot.calendar_versions (tenant_id, name, version, definition, valid_from)
select w.tenant_id, w.name, w.version, w.definition, w.updated_at
  from written w
returning version;
