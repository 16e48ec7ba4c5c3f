-- purpose: advance due jobs and insert their executions and skips, together or not at all
-- caller: sql jobs/fire_due
-- transition: job EXHAUST: ACTIVE -> COMPLETED
-- fence: next_instant, schedule_version, status, queue
-- index: jobs_pkey, executions_job, executions_overlap, limits_pkey
--
-- A job that is no longer what the caller saw is left alone, so whoever comes second changes nothing: a frozen node,
-- a replay after an unknown commit. Over 5 s after `p_as_of`, by which it was decided, nothing is done or answered:
-- it may be a misfire; nor for a job past its own `until`. `p_take` waits for the jobs' locks instead of passing over
-- them. Without `p_flow_queues` no flow is locked: what is ready is parked for the release. `p_replace`: some cancel
-- what runs. A null in an array is what is usual (see store.firing). Of a job's fires, in time, `starts` start, then
-- `holds` wait for what runs, the rest are skips; CANCEL_PREVIOUS counts from the newest.
create or replace function foliot.fire(
  p_flow_queues text[], p_flow_tenant_ids uuid[], p_job_ids uuid[], p_queues text[], p_expected timestamptz[],
  p_schedule_versions integer[], p_next_instants timestamptz[], p_next_run_ats timestamptz[], p_settled timestamptz[],
  p_runs_left bigint[], p_fire_counts integer[], p_untils timestamptz[], p_fire_jobs integer[],
  p_fire_places integer[], p_fire_ids uuid[], p_fire_instants timestamptz[], p_fire_ats timestamptz[],
  p_skip_jobs integer[], p_skip_froms timestamptz[], p_skip_tos timestamptz[], p_skip_counts bigint[],
  p_skip_reasons text[], p_take boolean, p_replace boolean, p_now timestamptz, p_as_of timestamptz
) returns table (jobs integer[], fired integer[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = auto as $$
declare
  moment timestamptz;
  limited text[] := foliot.tenant_keys(p_flow_tenant_ids);
begin
  if p_take then perform foliot.lock_turns(p_job_ids, false); end if;
  if p_take then perform from foliot.jobs j where j.id = any(p_job_ids) order by j.id for no key update; end if;
  if p_flow_queues is not null then perform foliot.lock_flows(p_flow_queues, p_flow_tenant_ids); end if;
  moment := coalesce(p_now, clock_timestamp());
  if moment > p_as_of + interval '5 s' then return; end if;
  return query
  with due as materialized (
    select x.n::integer as n, coalesce(x.fires, 1) as fires, x.next_instant, x.next_run_at, x.settled, x.runs_left, j.*,
           case when j.overlap_policy = 'ALLOW' then false
                when j.sole_id is not null then (select true from foliot.executions e where e.id = j.sole_id)
                else (select true from foliot.executions e
                       where e.job_id = x.job_id and e.trigger in ('SCHEDULE', 'AFTER') limit 1) end as busy,
           (select true from foliot.executions e
             where e.job_id = x.job_id and e.status = 'WAITING' and e.hold = 'OVERLAP'
               and j.overlap_policy = 'QUEUE_ONE' limit 1) as held
      from unnest(p_job_ids, p_queues, p_expected, p_schedule_versions, p_next_instants, p_next_run_ats,
                  p_settled, p_runs_left, p_fire_counts, p_untils) with ordinality
             x(job_id, queue, expected, version, next_instant, next_run_at, settled, runs_left, fires, until, n)
     cross join lateral (
           select j.ctid as tid, j.overlap_policy, j.sole_id, x.expected from foliot.jobs j
            where j.id = x.job_id and j.next_instant = x.expected
              and j.queue = coalesce(x.queue, p_flow_queues[1])
              and j.schedule_version = x.version and j.status = 'ACTIVE' and coalesce(moment <= x.until, true)
              for no key update skip locked) j),
  places as (
    select d.*, case when d.overlap_policy = 'ALLOW' then d.fires
                     when d.busy then 0 else least(d.fires, 1) end as starts,
           case d.overlap_policy when 'QUEUE_ALL' then d.fires
                                 when 'QUEUE_ONE' then (d.held is null)::integer
                                 when 'CANCEL_PREVIOUS' then (d.busy is true)::integer else 0 end as holds from due d),
  tally as (
    select p.*, least(p.fires, p.starts + p.holds) as fired,
           p.next_instant is null or coalesce(least(p.fires, p.starts + p.holds) >= p.runs_left, false) as last
      from places p),
  advanced as (
    update foliot.jobs j
       set next_instant = case when not t.last then t.next_instant end,
           next_run_at = case when not t.last then coalesce(t.next_run_at, t.next_instant) end,
           status = case when t.last then 'COMPLETED' else j.status end,
           last_instant = greatest(j.last_instant, coalesce(t.settled, t.expected)),
           fired_count = j.fired_count + t.fired,
           sole_id = case when t.fired = 0 then j.sole_id when t.overlap_policy <> 'ALLOW' and t.starts = 1
                               and t.fired = 1 and p_fire_jobs is null then p_fire_ids[t.n] end
      from tally t where j.ctid = t.tid
    returning t.n, t.starts, t.fired, t.expected,
              case when t.overlap_policy = 'CANCEL_PREVIOUS' then t.fires + 1 end as turn,
              j.id as job_id, j.tenant_id, j.version, j.schedule_version, j.queue, j.lane_id, j.priority,
              j.start_deadline_seconds, j.notify, j.name, j.tags, case when 'tenant:' || j.tenant_id = any(limited)
              then 'tenant:' || j.tenant_id::text || j.limit_keys else j.limit_keys end as limit_keys),
  asked as (
    select a.*, f.id, coalesce(f.instant, a.expected) as instant,
           coalesce(f.run_at, f.instant, a.expected) as run_at,
           coalesce(a.turn - coalesce(f.place, 1), f.place, 1) as place
      from unnest(p_fire_jobs, p_fire_places, p_fire_ids, p_fire_instants, p_fire_ats)
             with ordinality f(job, place, id, instant, run_at, n)
      join advanced a on a.n = coalesce(f.job, f.n::integer)),
  placed as materialized (
    select p.*, p.place <= p.starts and p.limit_keys is null and p.run_at <= moment
                and p_flow_queues is not null as ready,
           case when p.place > p.starts then 'OVERLAP'
                when p.run_at <= moment and p.limit_keys is not null then 'LIMIT' end as hold from asked p),
  flows as materialized (
    select p.queue, p.lane_id, p.tenant_id, p.priority from placed p where p.ready group by 1, 2, 3, 4),
  starts as materialized (
    select s.* from foliot.flow_starts(array(select f.queue from flows f), array(select f.lane_id from flows f),
                      array(select f.tenant_id from flows f), array(select f.priority from flows f)) s),
  inserted as (
    insert into foliot.executions
           (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id, priority, rank, scheduled_time,
            available_at, queued_at, start_by, limit_keys, hold, notify, job_name, tags, created_at)
    select p.id, p.tenant_id, p.job_id, p.version,
           case when p.hold is not null then 'WAITING' when p.ready then 'QUEUED' else 'PENDING' end,
           'SCHEDULE', p.queue, p.lane_id, p.priority,
           s.start + s.step * row_number() over (partition by s.flow order by p.instant, p.id), p.instant,
           greatest(p.run_at, case when p_flow_queues is null then moment end), case when p.ready then moment end,
           p.run_at + make_interval(secs => p.start_deadline_seconds), p.limit_keys, p.hold, p.notify, p.name,
           p.tags, moment
      from placed p
      left join starts s on p.ready and (s.queue, s.lane_id, s.tenant_id, s.priority)
                                      = (p.queue, p.lane_id, p.tenant_id, p.priority)
     where p.place <= p.fired on conflict (id) do nothing),
  recorded as (
    insert into foliot.skips
           (job_id, tenant_id, schedule_version, from_instant, to_instant, count, reason, recorded_at)
    select a.job_id, a.tenant_id, a.schedule_version, s.from_instant, s.to_instant, s.count, s.reason, moment
      from unnest(p_skip_jobs, p_skip_froms, p_skip_tos, p_skip_counts, p_skip_reasons)
             s(job, from_instant, to_instant, count, reason)
      join advanced a on a.n = s.job
     union all
    select p.job_id, p.tenant_id, p.schedule_version, p.instant, p.instant, 1, 'OVERLAP', moment
      from placed p where p.place > p.fired on conflict (job_id, from_instant) do nothing)
  select array_agg(a.n), array_agg(a.fired) from advanced a;
  if p_replace then perform foliot.cancel_previous(p_fire_ids, moment); end if;
end
$$;
