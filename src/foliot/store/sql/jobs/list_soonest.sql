-- purpose: a page of a tenant's jobs, the one that runs next first; those without an instant come last
-- caller: store.job_lists
-- transition: none
-- fence: none
-- index: job_versions_first, jobs_pkey, job_versions_pkey
select j.id as job_id, j.tenant_id, j.name, j.status, j.version, j.schedule_version, j.queue, j.next_instant,
       j.next_run_at, j.last_instant, j.fired_count, j.status_note, j.created_at, j.updated_at,
       v.definition, v.payload,
       coalesce((v.definition ->> 'counted_from')::timestamptz, j.created_at) as counted_from,
       (v.definition -> 'schedule')::text as schedule, c.definition::text as calendar,
       coalesce($15::timestamptz, statement_timestamp()) as now
  from foliot.job_versions f
  join foliot.jobs j on j.id = f.job_id and j.tenant_id = f.tenant_id
  join foliot.job_versions v on v.job_id = j.id and v.version = j.version
  left join foliot.calendars c
    on c.tenant_id = j.tenant_id and c.name = v.definition -> 'schedule' ->> 'calendar'
 where f.tenant_id = $1::uuid and f.version = 1 and j.status <> 'DELETED' and not j.hidden
   and ($2::text[] is null or j.status = any($2))
   and ($3::text is null or $3 = (select a.status from foliot.attempts a
                                   where a.job_id = j.id and a.final order by a.finished_at desc limit 1))
   and ($4::text[] is null or coalesce(j.tags, '{}') @> $4)
   and ($5::jsonb is null or v.definition -> 'labels' @> $5)
   and ($6::text is null or starts_with(j.name, $6))
   and ($7::text is null or j.queue = $7)
   and ($8::text is null or v.definition -> 'target' ->> 'type' = $8)
   and ($9::text is null or v.definition -> 'schedule' ->> 'type' = $9)
   and ($10::text is null or v.definition ->> 'created_by' = $10)
   and ($11::text is null
        or position(lower($11) in lower(concat_ws(chr(10), j.name, v.definition ->> 'description',
                                                  v.definition -> 'target' ->> 'name',
                                                  v.definition -> 'target' ->> 'url'))) > 0)
   and ($13::uuid is null
        or (coalesce(j.next_run_at, 'infinity'), j.id) > (coalesce($12::timestamptz, 'infinity'), $13))
 order by coalesce(j.next_run_at, 'infinity'), j.id
 limit $14::integer;
