-- purpose: a job with its version in force and all that it takes to settle it, and what time it is
-- caller: store.job_rows
-- transition: none
-- fence: none
-- index: jobs_pkey, job_versions_pkey, calendars_pkey
select j.id as job_id, j.tenant_id, j.name, j.status, j.version, j.schedule_version, j.queue, j.next_instant,
       j.next_run_at, j.last_instant, j.fired_count, j.status_note, j.created_at, j.updated_at,
       v.definition, v.payload,
       coalesce((v.definition ->> 'counted_from')::timestamptz, j.created_at) as counted_from,
       (v.definition -> 'schedule')::text as schedule, c.definition::text as calendar,
       coalesce($3::timestamptz, statement_timestamp()) as now
  from foliot.jobs j
  join foliot.job_versions v on v.job_id = j.id and v.version = j.version
  left join foliot.calendars c
    on c.tenant_id = j.tenant_id and c.name = v.definition -> 'schedule' ->> 'calendar'
 where j.id = $1::uuid and j.tenant_id = $2::uuid and j.status <> 'DELETED';
