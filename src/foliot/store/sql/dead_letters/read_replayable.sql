-- purpose: what a replay of dead letters needs to know of them, and of their jobs as they are now
-- caller: store.replaying
-- transition: none
-- fence: none
-- index: dead_letters_pkey, jobs_pkey, job_versions_pkey
--
-- The job's payload is read only where a concurrency key is made of it. By the template of that time a key
-- that came with a request is told from one that the job had made.
select d.id, d.job_id, d.scheduled_time, d.failed_at, d.payload, d.payload_is_jobs, d.priority, d.labels,
       d.limit_key, o.template, d.idempotency_key, d.replayed_as, d.discard_reason, j.queue, j.limited, v.concurrency,
       v.job_payload, v.is_automatic
  from unnest($2::uuid[]) x(id)
 cross join lateral (
       select d.* from foliot.dead_letters d where d.id = x.id and d.tenant_id = $1::uuid offset 0) d
  left join lateral (
       select v.definition -> 'concurrency' ->> 'key' as template
         from foliot.job_versions v where v.job_id = d.job_id and v.version = d.job_version offset 0) o on true
  left join lateral (
       select j.id, j.version, j.queue, j.limit_keys is not null as limited from foliot.jobs j
        where j.id = d.job_id and j.tenant_id = $1::uuid and j.status <> 'DELETED' offset 0) j on true
  left join lateral (
       select v.definition -> 'concurrency' as concurrency,
              case when v.definition -> 'concurrency' ->> 'key' like '%${%' then v.payload end as job_payload,
              v.definition -> 'dead_letter' ->> 'auto_replay_after_seconds' is not null as is_automatic
         from foliot.job_versions v where v.job_id = j.id and v.version = j.version offset 0) v on true;
