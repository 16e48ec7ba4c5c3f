-- purpose: how many jobs of a tenant a list has in all
-- caller: store.job_lists
-- transition: none
-- fence: none
-- index: job_versions_first, jobs_pkey, job_versions_pkey
select count(*)
  from foliot.job_versions f
  join foliot.jobs j on j.id = f.job_id and j.tenant_id = f.tenant_id
  join foliot.job_versions v on v.job_id = j.id and v.version = j.version
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
                                                  v.definition -> 'target' ->> 'url'))) > 0);
