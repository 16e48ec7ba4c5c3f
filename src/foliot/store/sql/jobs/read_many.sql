-- purpose: jobs with their versions in force and all that it takes to settle them, and what time it is
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
  from unnest($1::uuid[]) x(id)
 cross join lateral (select j.* from foliot.jobs j
                      where j.id = x.id and j.tenant_id = $2::uuid and j.status <> 'DELETED' offset 0) j
 cross join lateral (select v.definition, v.payload from foliot.job_versions v
                      where v.job_id = j.id and v.version = j.version offset 0) v
  left join lateral (select c.definition from foliot.calendars c
                      where c.tenant_id = j.tenant_id
                        and c.name = v.definition -> 'schedule' ->> 'calendar' offset 0) c on true;
