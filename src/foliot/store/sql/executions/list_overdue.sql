-- purpose: what runs far past its timeout, or past the grace of a cancellation, in hands that still
--   live: the server's second line, five seconds after the worker's own
-- caller: store.rescuing
-- transition: none
-- fence: none
-- index: executions_worker, job_versions_pkey
--
-- What was claimed in the last five seconds cannot be late, and its definition is not read: of a crowd that
-- runs for a moment each, that is nearly everything.
select e.id, e.fence, e.worker_id, e.claimed_at, e.attempt_number, e.crash_count, e.run_alone,
       e.cancel_requested_at, true as started, v.retry_policy
  from foliot.executions e
 cross join lateral (
       select v.definition -> 'retry_policy' as retry_policy,
              case jsonb_typeof(v.definition -> 'timeout_seconds')
                when 'number' then (v.definition ->> 'timeout_seconds')::float8 else 300 end as timeout,
              case jsonb_typeof(v.definition -> 'cancel_grace_seconds')
                when 'number' then (v.definition ->> 'cancel_grace_seconds')::float8 else 30 end as grace
         from foliot.job_versions v
        where v.job_id = e.job_id and v.version = e.job_version offset 0) v
 where e.worker_id is not null and (e.worker_id, e.id) > ($1::uuid, $2::uuid)
   and e.claimed_at < coalesce($4::timestamptz, statement_timestamp()) - interval '5 s'
   and (e.claimed_at < coalesce($4::timestamptz, statement_timestamp())
                       - make_interval(secs => v.timeout + v.grace + 5)
        or e.cancel_requested_at < coalesce($4::timestamptz, statement_timestamp())
                                   - make_interval(secs => v.grace + 5))
 order by e.worker_id, e.id limit $3::integer;
