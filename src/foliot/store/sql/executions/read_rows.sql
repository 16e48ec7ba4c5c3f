-- purpose: all that is known of some executions: the live row, if there is one, and every attempt
-- caller: store.execution_rows
-- transition: none
-- fence: none
-- index: executions_pkey, attempts_identity, job_versions_pkey, dead_letters_pkey
--
-- Live and history in one statement, so that a row that is just finishing is not missed. An execution ended
-- after the time in its id, which spares all earlier days; where its end is known, also the later ones.
with asked as materialized (
  select x.* from unnest($2::uuid[], $3::timestamptz[], $4::timestamptz[]) x(id, since, ended)),
found as (
  select e.id, true as live, false as final, e.fence, e.attempt_number, e.job_id, e.job_version, e.job_name,
         e.tags, e.status, e.trigger, e.queue, e.priority, e.scheduled_time, e.available_at, e.queued_at,
         e.claimed_at, e.claimed_at as started_at, null::timestamptz as finished_at, e.worker_id, e.labels,
         null::jsonb as result, false as result_truncated, null::jsonb as error, null::jsonb as response,
         e.idempotency_key, e.retry_of, e.dag_run_id, e.trace_id, e.cancel_requested_at, e.progress
    from asked x
   cross join lateral (select e.* from foliot.executions e
                        where e.id = x.id and e.tenant_id = $1::uuid offset 0) e
   union all
  select a.id, false, a.final, a.fence, a.attempt_number, a.job_id, a.job_version, a.job_name,
         a.tags, a.status, a.trigger, a.queue, a.priority, a.scheduled_time, a.available_at, a.queued_at,
         a.claimed_at, a.started_at, a.finished_at, a.worker_id, a.labels,
         a.result, a.result_truncated, a.error, a.response,
         a.idempotency_key, a.retry_of, a.dag_run_id, a.trace_id, a.cancel_requested_at, null::jsonb
    from asked x
   cross join lateral (select a.* from foliot.attempts a
                        where a.id = x.id and a.tenant_id = $1::uuid
                          and a.finished_at >= x.since
                          and a.finished_at <= coalesce(x.ended, 'infinity') offset 0) a)
select f.*, d.id as dead_letter_id, coalesce(v.max_attempts, 4) as max_attempts
  from found f
  left join lateral (select d.id from foliot.dead_letters d
                      where d.id = f.id and d.tenant_id = $1::uuid offset 0) d on true
  left join lateral (
       select (v.definition -> 'retry_policy' ->> 'max_attempts')::integer as max_attempts
         from foliot.job_versions v where v.job_id = f.job_id and v.version = f.job_version
       offset 0) v on true
 order by f.id, f.live, f.finished_at, f.fence;
