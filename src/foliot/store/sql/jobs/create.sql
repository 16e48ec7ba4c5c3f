-- purpose: a new job and its first version; nothing if its id is there already
-- caller: store.jobs
-- transition: none
-- fence: none
-- index: jobs_pkey, calendars_pkey
with made as (
  insert into foliot.jobs
         (id, tenant_id, shard, status, version, schedule_version, next_instant, next_run_at, queue,
          lane_id, priority, overlap_policy, start_deadline_seconds, limit_keys, notify, name, tags,
          created_at, updated_at)
  values ($1::uuid, $2::uuid, $3::smallint, case when $4::boolean then 'ACTIVE' else 'COMPLETED' end, 1, 1,
          $5::timestamptz, $6::timestamptz, $7::text, $8::integer, $9::smallint, $10::text, $11::float8,
          $12::text[], $13::boolean, $14::text, $15::text[], $19::timestamptz, $19::timestamptz)
      on conflict (id) do nothing
  returning *)
insert into foliot.job_versions
       (job_id, tenant_id, version, schedule_version, status, definition, payload, changed_by, note,
        valid_from, calendar_version)
select m.id, m.tenant_id, m.version, m.schedule_version, m.status, $16::text::jsonb, $17::text::jsonb,
       $18::text, null, m.created_at,
       (select k.version from foliot.calendars k
         where k.tenant_id = m.tenant_id and k.name = $16::text::jsonb -> 'schedule' ->> 'calendar')
  from made m;
