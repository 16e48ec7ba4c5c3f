-- purpose: fire a job again; without an instant left it is over
-- caller: store.jobs
-- transition: job RESUME: PAUSED -> ACTIVE, job EXHAUST: ACTIVE -> COMPLETED
-- fence: status, under the lock of the job
-- index: jobs_pkey
with changed as (
  update foliot.jobs j
     set status = case when j.next_instant is null and $5::boolean then 'COMPLETED' else 'ACTIVE' end,
         status_note = $3::text,
         version = j.version + 1, updated_at = $4::timestamptz
   where j.id = $1::uuid and j.status = 'PAUSED'
  returning j.*)
insert into foliot.job_versions
       (job_id, tenant_id, version, schedule_version, status, definition, payload, changed_by, note,
        valid_from, last_instant, fired_count, calendar_version)
select c.id, c.tenant_id, c.version, c.schedule_version, c.status, v.definition, v.payload, $2::text,
       c.status_note, c.updated_at, c.last_instant, c.fired_count, v.calendar_version
  from changed c
  join foliot.job_versions v on v.job_id = c.id and v.version = c.version - 1;
