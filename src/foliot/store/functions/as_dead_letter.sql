-- purpose: the dead letter that a live row becomes; the one place that knows both shapes
-- caller: function finish, function expire
-- transition: none
-- fence: none
-- index: job_versions_pkey
--
-- It has all that a replay needs, because history is forgotten sooner. What is a replay or a retry itself,
-- and what takes workers down, is replayed only if somebody asks.
-- Plain SQL in one SELECT, so that it is inlined.
create or replace function foliot.as_dead_letter(
  e foliot.executions, p_reason text, p_fingerprint text, p_failed_at timestamptz, p_error jsonb
) returns setof foliot.dead_letters
language sql stable
as $$
  select e.id, e.tenant_id, e.job_id, e.job_version, e.job_name, p_reason, p_fingerprint, e.scheduled_time,
         p_failed_at, coalesce(e.payload, v.payload), e.payload is null, e.priority, e.labels,
         foliot.concurrency_key(e.limit_keys), e.idempotency_key, e.attempt_number, p_error,
         case when v.delay is not null and e.retry_of is null and p_reason <> 'POISON'
              then p_failed_at + make_interval(secs => least(v.delay, 31622400)) end,
         null::uuid, null::timestamptz, null::timestamptz, null::text
    from (values (true)) one(row)
    left join lateral (
         select v.payload, (v.definition -> 'dead_letter' ->> 'auto_replay_after_seconds')::float8 as delay
           from foliot.job_versions v
          where v.job_id = e.job_id and v.version = e.job_version offset 0) v on true
$$;
