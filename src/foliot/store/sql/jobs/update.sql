-- purpose: the next version of a job; what is due has been settled before
-- caller: store.jobs
-- transition: job RESCHEDULE: COMPLETED -> ACTIVE, job EXHAUST: ACTIVE -> COMPLETED
-- fence: status, under the lock of the job
-- index: jobs_pkey, calendars_pkey
with changed as (
  update foliot.jobs j
     set version = j.version + 1, updated_at = $2::timestamptz,
         schedule_version = j.schedule_version + $3::boolean::integer,
         status = case when j.status = 'PAUSED' then 'PAUSED' when $4::boolean then 'ACTIVE'
                       else 'COMPLETED' end,
         next_instant = $5::timestamptz, next_run_at = $6::timestamptz, queue = $7::text,
         lane_id = $8::integer, priority = $9::smallint, overlap_policy = $10::text,
         start_deadline_seconds = $11::float8, limit_keys = $12::text[], notify = $13::boolean,
         name = $14::text, tags = $15::text[]
   where j.id = $1::uuid and j.status <> 'DELETED'
  returning j.*)
insert into foliot.job_versions
       (job_id, tenant_id, version, schedule_version, status, definition, payload, changed_by, note,
        valid_from, last_instant, fired_count, calendar_version)
select c.id, c.tenant_id, c.version, c.schedule_version, c.status, $16::text::jsonb, $17::text::jsonb,
       $18::text, null, c.updated_at, c.last_instant, c.fired_count,
       (select k.version from foliot.calendars k
         where k.tenant_id = c.tenant_id and k.name = $16::text::jsonb -> 'schedule' ->> 'calendar')
  from changed c;
