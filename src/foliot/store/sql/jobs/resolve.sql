-- purpose: the jobs that names or ids mean, with what a request for an execution of them needs to know
-- caller: store.job_references
-- transition: none
-- fence: none
-- index: jobs_pkey, job_names_pkey, job_versions_pkey
--
-- An id comes before a name that looks like one. The payload is read only where a key is made of it.
select r.n, j.id as job_id, j.name, j.status, j.queue, j.limited, v.definition -> 'concurrency' as concurrency,
       case when v.definition -> 'concurrency' ->> 'key' like '%${%' then v.payload end as payload,
       coalesce($4::timestamptz, statement_timestamp()) as now
  from unnest($2::uuid[], $3::text[]) with ordinality r(id, name, n)
  left join lateral (
       select k.id, k.named
         from (select o.id, false as named from foliot.jobs o
                where o.id = r.id and o.tenant_id = $1::uuid and o.status <> 'DELETED'
                union all
               select h.job_id, true from foliot.job_names h
                where h.tenant_id = $1::uuid and h.name = r.name) k
        limit 1) k on true
  left join lateral (
       select j.id, j.name, j.status, j.version, j.queue, j.limit_keys is not null as limited
         from foliot.jobs j
        where j.id = k.id and j.tenant_id = $1::uuid and j.status <> 'DELETED' and not j.hidden
          and (not k.named or j.name = r.name) offset 0) j on true
  left join lateral (
       select v.definition, v.payload from foliot.job_versions v
        where v.job_id = j.id and v.version = j.version offset 0) v on true
 order by r.n;
