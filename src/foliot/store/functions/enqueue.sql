-- purpose: insert the executions that one request asks for, once, however often it is sent
-- caller: sql executions/enqueue
-- transition: none
-- fence: idempotency_keys_pkey, executions_unique_key, executions_pkey
-- index: jobs_pkey, executions_unique_key, executions_pkey, attempts_identity, limits_pkey
--
-- All of it or nothing: a job that is not there fails the request (FL404, the job in the hint). Jobs are
-- locked against deletion, then limits, then flows; nobody waits for a job while holding a flow.
--
-- `outcome` is CREATED; EXISTS, a live execution has the unique key; FILLED, the instant has an execution;
-- UNSETTLED, the schedule itself will come to the instant. A backfill runs again under `p_rerun_ids`.
-- Ranks are picked from a list by place: a join of two lists of 10,000 would be planned as a loop.
create or replace function foliot.enqueue(
  p_tenant_id uuid, p_route text, p_key text, p_request_hash bytea, p_ids uuid[], p_job_ids uuid[],
  p_triggers text[], p_payloads text[], p_priorities smallint[], p_run_ats timestamptz[],
  p_delays float8[], p_instants timestamptz[], p_scheduled_ids uuid[], p_rerun_ids uuid[],
  p_labels text[], p_limit_keys text[], p_limits integer[], p_unique_keys text[],
  p_idempotency_keys text[], p_retry_ofs uuid[], p_trace_ids text[], p_now timestamptz
) returns table (id uuid, outcome text, replayed boolean)
language plpgsql
set enable_seqscan = off
as $$
declare
  answers jsonb;
  missing uuid;
  moment timestamptz;
begin
  answers := foliot.remember_request(p_tenant_id, p_route, p_key, p_request_hash, p_now);
  if answers is not null then
    return query select (a ->> 0)::uuid, a ->> 1, true from jsonb_array_elements(answers) a;
    return;
  end if;
  perform from foliot.jobs j where j.id = any(p_job_ids) order by j.id for share;
  select x.job_id into missing from unnest(p_job_ids) x(job_id)
   where not exists (select from foliot.jobs j where j.id = x.job_id and j.tenant_id = p_tenant_id
                                                 and j.status <> 'DELETED') limit 1;
  if found then
    raise exception 'no such job' using errcode = 'FL404', hint = missing;
  end if;
  insert into foliot.limits (key, max_running)
  select x.key, min(x.most) from unnest(p_limit_keys, p_limits) x(key, most)
   where x.most is not null
     and not exists (select from foliot.limits l where l.key = x.key and l.max_running = x.most)
   group by x.key order by x.key
      on conflict (key) do update set max_running = excluded.max_running;
  perform foliot.lock_flows(array_agg(j.queue), array_agg(j.tenant_id))
     from foliot.jobs j where j.id = any(p_job_ids);
  moment := coalesce(p_now, clock_timestamp());

  with asked as materialized (
    select x.*, j.version, j.queue, j.lane_id, coalesce(x.own_priority, j.priority) as priority, j.notify,
           j.start_deadline_seconds, j.name, j.tags,
           case when x.unique_key is not null or x.instant is not null
                then (select t.id from foliot.find_twin(x.job_id, x.unique_key, x.instant,
                                                        array[x.scheduled_id, x.id]) t) end as twin_id,
           coalesce(x.run_at, moment + make_interval(secs => x.delay), moment) as available_at,
           first_value(x.id) over alike as first_id,
           x.instant > coalesce(j.last_instant, '-infinity')
             and x.instant >= coalesce(j.next_instant, case j.status when 'PAUSED' then '-infinity'
                                                       else 'infinity' end::timestamptz) as unsettled,
           case when j.limit_keys is not null or x.limit_key is not null
                then foliot.keep_limits(j.limit_keys, x.limit_key) end as limit_keys
      from unnest(p_ids, p_job_ids, p_triggers, p_payloads, p_priorities, p_run_ats, p_delays, p_instants,
                  p_scheduled_ids, p_rerun_ids, p_labels, p_limit_keys, p_unique_keys,
                  p_idempotency_keys, p_retry_ofs, p_trace_ids) with ordinality
             x(id, job_id, trigger, payload, own_priority, run_at, delay, instant, scheduled_id, rerun_id,
               labels, limit_key, unique_key, idempotency_key, retry_of, trace_id, n)
     cross join lateral (select * from foliot.jobs j where j.id = x.job_id) j
    window alike as (partition by x.job_id, coalesce(x.unique_key, x.n::text), x.unique_key is null
                     order by x.n)),
  decided as materialized (
    select a.*,
           case when a.twin_id is not null and a.rerun_id is not null then a.rerun_id
                else coalesce(a.twin_id, a.first_id) end as kept_id,
           case when a.unsettled then 'UNSETTLED'
                when a.instant is not null and a.twin_id is not null and a.rerun_id is null then 'FILLED'
                when a.instant is null and (a.twin_id is not null or a.first_id <> a.id) then 'EXISTS'
                else 'CREATED' end as outcome,
           case when a.available_at > moment then 'PENDING'
                when a.limit_keys is not null then 'WAITING' else 'QUEUED' end as status
      from asked a),
  ready as materialized (
    select d.*, count(*) filter (where d.status = 'QUEUED') over (order by d.n) as place
      from decided d where d.outcome = 'CREATED'),
  ranks as materialized (
    select array(select a.rank
                   from foliot.assign_ranks(
                          array(select r.queue from ready r where r.status = 'QUEUED' order by r.n),
                          array(select r.lane_id from ready r where r.status = 'QUEUED' order by r.n),
                          array(select p_tenant_id from ready r where r.status = 'QUEUED'),
                          array(select r.priority from ready r where r.status = 'QUEUED' order by r.n)) a
                  order by a.n) as list),
  inserted as (
    insert into foliot.executions
           (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id, priority, rank,
            scheduled_time, available_at, queued_at, start_by, limit_keys, hold, unique_key, notify,
            job_name, tags, labels, payload, idempotency_key, retry_of, trace_id, created_at)
    select d.kept_id, p_tenant_id, d.job_id, d.version, d.status, d.trigger, d.queue, d.lane_id, d.priority,
           case d.status when 'QUEUED' then (select r.list from ranks r)[d.place] end,
           coalesce(d.instant, d.available_at), d.available_at,
           case d.status when 'QUEUED' then moment end,
           greatest(d.available_at, moment) + make_interval(secs => d.start_deadline_seconds),
           d.limit_keys, case d.status when 'WAITING' then 'LIMIT' end, d.unique_key, d.notify,
           d.name, d.tags, d.labels::jsonb, d.payload::jsonb, d.idempotency_key, d.retry_of, d.trace_id,
           moment
      from ready d)
  update foliot.idempotency_keys k
     set answer = (select jsonb_agg(jsonb_build_array(d.kept_id, d.outcome) order by d.n) from decided d)
   where k.tenant_id = p_tenant_id and k.route = p_route and k.key = p_key
  returning k.answer into answers;
  return query select (a ->> 0)::uuid, a ->> 1, false from jsonb_array_elements(answers) a;
end
$$;
