-- purpose: insert the executions that one request asks for, once, however often it is sent
-- caller: sql executions/enqueue, function replay
-- transition: none
-- fence: idempotency_keys_pkey, executions_unique_key, executions_pkey
-- index: jobs_pkey, executions_unique_key, executions_pkey, attempts_identity, limits_pkey
--
-- All of it or nothing: a job that is not there fails the request (FL404, the job in the hint). Jobs are
-- locked against deletion, each in turn, then limits, as by a change of the job, then flows: nobody waits for a change
-- while holding a flow.
--
-- `outcome` is CREATED; EXISTS, a live execution has the unique key; FILLED, the instant has an execution;
-- UNSETTLED, the schedule itself will come to the instant. A backfill runs again under `p_rerun_ids`.
-- The answer is kept as two lists of words: a thousand pairs in JSON took 6 ms. A plan made for the very
-- arguments takes 2 ms, which only many rows are worth.
create or replace function foliot.enqueue(
  p_tenant_id uuid, p_route text, p_key text, p_request_hash bytea, p_ids uuid[], p_job_ids uuid[],
  p_triggers text[], p_payloads text[], p_priorities smallint[], p_run_ats timestamptz[], p_delays float8[],
  p_instants timestamptz[], p_scheduled_ids uuid[], p_rerun_ids uuid[], p_labels text[],
  p_limit_keys text[], p_limits integer[], p_unique_keys text[], p_idempotency_keys text[],
  p_retry_ofs uuid[], p_trace_ids text[], p_now timestamptz
) returns table (id uuid, outcome text, replayed boolean)
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_custom_plan as $$
declare
  answer jsonb;
  missing uuid;
  queues text[];
  kept_ids uuid[];
  outcomes text[];
  moment timestamptz;
  wide_keys text[] := foliot.tenant_keys(array[p_tenant_id]);
begin
  perform set_config('plan_cache_mode', 'force_generic_plan', true) where cardinality(p_ids) <= 20;
  answer := foliot.remember_request(p_tenant_id, p_route, p_key, p_request_hash, p_now);
  if answer is not null then
    return query select a.id::uuid, a.outcome, true from unnest(string_to_array(answer ->> 'ids', ' '),
                                               string_to_array(answer ->> 'outcomes', ' ')) a(id, outcome);
    return;
  end if;
  perform foliot.lock_turns(p_job_ids, true);
  with locked as materialized (
    select j.id, j.queue from foliot.jobs j
     where j.id = any(p_job_ids) and j.tenant_id = p_tenant_id and j.status <> 'DELETED'
     order by j.id for share)
  select array(select distinct l.queue from locked l), (select x.job_id from unnest(p_job_ids) x(job_id)
           where x.job_id not in (select l.id from locked l) limit 1) into queues, missing;
  if missing is not null then
    raise exception 'no such job' using errcode = 'FL404', hint = missing;
  end if;
  perform foliot.name_limits(p_limit_keys, p_limits);
  perform foliot.lock_flows(queues, array_fill(p_tenant_id, array[cardinality(queues)]));
  moment := coalesce(p_now, clock_timestamp());

  with wanted as materialized (
    select x.*
      from unnest(p_ids, p_job_ids, p_triggers, p_payloads, p_priorities, p_run_ats, p_delays, p_instants,
                  p_scheduled_ids, p_rerun_ids, p_labels, p_limit_keys, p_unique_keys,
                  p_idempotency_keys, p_retry_ofs, p_trace_ids) with ordinality
             x(id, job_id, trigger, payload, own_priority, run_at, delay, instant, scheduled_id, rerun_id,
               labels, limit_key, unique_key, idempotency_key, retry_of, trace_id, n)),
  firsts as materialized (
    select distinct on (w.job_id, w.unique_key) w.job_id, w.unique_key, w.id
      from wanted w where w.unique_key is not null order by w.job_id, w.unique_key, w.n),
  asked as (
    select w.*, j.*, coalesce(w.own_priority, j.job_priority) as priority,
           case when w.unique_key is not null or w.instant is not null
                then (select t.id from foliot.find_twin(w.job_id, w.unique_key, w.instant,
                                                        array[w.scheduled_id, w.id]) t) end as twin_id,
           coalesce(w.run_at, moment + make_interval(secs => w.delay), moment) as available_at,
           coalesce(f.id, w.id) as first_id,
           w.instant > coalesce(j.last_instant, '-infinity')
             and w.instant >= coalesce(j.next_instant, case j.status when 'PAUSED' then '-infinity'
                                                       else 'infinity' end::timestamptz) as unsettled,
           case when j.job_keys is not null or w.limit_key is not null
                then foliot.keep_limits(j.job_keys, w.limit_key) end as limit_keys
      from wanted w
     cross join lateral (
           select j.version, j.queue, j.lane_id, j.priority as job_priority, j.notify, j.name, j.tags, j.status,
                  j.start_deadline_seconds, j.last_instant, j.next_instant, wide_keys || j.limit_keys as job_keys
             from foliot.jobs j where j.id = w.job_id offset 0) j
      left join firsts f on f.job_id = w.job_id and f.unique_key = w.unique_key),
  decided as materialized (
    select a.*, case when a.twin_id is not null and a.rerun_id is not null then a.rerun_id
                     else coalesce(a.twin_id, a.first_id) end as kept_id,
           case when a.unsettled then 'UNSETTLED'
                when a.instant is not null and a.twin_id is not null and a.rerun_id is null then 'FILLED'
                when a.instant is null and (a.twin_id is not null or a.first_id <> a.id) then 'EXISTS'
                else 'CREATED' end as outcome,
           case when a.available_at > moment then 'PENDING'
                when a.limit_keys is not null then 'WAITING' else 'QUEUED' end as state
      from (select a.* from asked a offset 0) a),
  flows as materialized (
    select d.queue, d.lane_id, d.priority from decided d
     where d.outcome = 'CREATED' and d.state = 'QUEUED' group by 1, 2, 3),
  starts as materialized (
    select s.* from foliot.flow_starts(array(select f.queue from flows f), array(select f.lane_id from flows f),
                      array(select p_tenant_id from flows f), array(select f.priority from flows f)) s),
  inserted as (
    insert into foliot.executions
           (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id, priority, rank,
            scheduled_time, available_at, queued_at, start_by, limit_keys, hold, unique_key, notify,
            job_name, tags, labels, payload, idempotency_key, retry_of, trace_id, created_at)
    select d.kept_id, p_tenant_id, d.job_id, d.version, d.state, d.trigger, d.queue, d.lane_id, d.priority,
           s.start + s.step * row_number() over (partition by s.flow order by d.n),
           coalesce(d.instant, d.available_at), d.available_at, case d.state when 'QUEUED' then moment end,
           greatest(d.available_at, moment) + make_interval(secs => d.start_deadline_seconds),
           d.limit_keys, case d.state when 'WAITING' then 'LIMIT' end, d.unique_key, d.notify,
           d.name, d.tags, d.labels::jsonb, d.payload::jsonb, d.idempotency_key, d.retry_of, d.trace_id, moment
      from decided d
      left join starts s on d.state = 'QUEUED'
                        and (s.queue, s.lane_id, s.priority) = (d.queue, d.lane_id, d.priority)
     where d.outcome = 'CREATED')
  select array_agg(d.kept_id order by d.n), array_agg(d.outcome order by d.n)
    into kept_ids, outcomes from decided d;
  update foliot.idempotency_keys k set answer = jsonb_build_object(
           'ids', array_to_string(kept_ids, ' '), 'outcomes', array_to_string(outcomes, ' '))
   where k.tenant_id = p_tenant_id and k.route = p_route and k.key = p_key;
  return query select a.id, a.outcome, false from unnest(kept_ids, outcomes) a(id, outcome);
end
$$;
