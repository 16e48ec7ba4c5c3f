-- purpose: what a retry of an execution that is over needs to know of it, and of its job as it is now
-- caller: store.replaying
-- transition: none
-- fence: none
-- index: attempts_identity, jobs_pkey, job_versions_pkey
--
-- The execution ended after the time in its id, which spares all earlier days. By the template and the payload of
-- that time a concurrency key that came with a request is told from one that the job had made.
select a.id, a.job_id, a.scheduled_time, coalesce(a.payload, o.payload) as payload,
       a.payload is null as payload_is_jobs, a.priority, a.labels, a.limit_key, o.template, a.idempotency_key, a.status,
       j.queue, j.limited, v.concurrency, v.job_payload,
       coalesce($4::timestamptz, statement_timestamp()) as now
  from (select a.* from foliot.attempts a
         where a.id = $2::uuid and a.tenant_id = $1::uuid and a.finished_at >= $3::timestamptz and a.final
         limit 1) a
  left join lateral (
       select v.definition -> 'concurrency' ->> 'key' as template,
              case when v.definition -> 'concurrency' ->> 'key' like '%${%' then v.payload end as payload
         from foliot.job_versions v where v.job_id = a.job_id and v.version = a.job_version offset 0) o on true
  left join lateral (
       select j.id, j.version, j.queue, j.limit_keys is not null as limited from foliot.jobs j
        where j.id = a.job_id and j.tenant_id = $1::uuid and j.status <> 'DELETED' offset 0) j on true
  left join lateral (
       select v.definition -> 'concurrency' as concurrency,
              case when v.definition -> 'concurrency' ->> 'key' like '%${%' then v.payload end as job_payload
         from foliot.job_versions v where v.job_id = j.id and v.version = j.version offset 0) v on true;
