-- purpose: a job is over for good; what is due has been settled before
-- caller: store.jobs
-- transition: job DELETE: ACTIVE -> DELETED, job DELETE: PAUSED -> DELETED,
--   job DELETE: COMPLETED -> DELETED
-- fence: status, under the lock of the job
-- index: jobs_pkey, job_names_pkey
with changed as (
  update foliot.jobs j
     set status = 'DELETED', status_note = $3::text, next_instant = null, next_run_at = null,
         version = j.version + 1, updated_at = $4::timestamptz
   where j.id = $1::uuid and j.status <> 'DELETED'
  returning j.*),
freed as (
  delete from foliot.job_names n using changed c
   where n.tenant_id = c.tenant_id and n.name = c.name and n.job_id = c.id)
insert into foliot.job_versions
       (job_id, tenant_id, version, schedule_version, status, definition, payload, changed_by, note,
        valid_from, last_instant, fired_count, calendar_version)
select c.id, c.tenant_id, c.version, c.schedule_version, c.status, v.definition, v.payload, $2::text,
       c.status_note, c.updated_at, c.last_instant, c.fired_count, v.calendar_version
  from changed c
  join foliot.job_versions v on v.job_id = c.id and v.version = c.version - 1;
