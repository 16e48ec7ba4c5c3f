-- purpose: advance due jobs and insert their executions and skips, together or not at all
-- caller: sql jobs/fire_due
-- transition: job EXHAUST: ACTIVE -> COMPLETED
-- fence: next_instant, schedule_version, status, queue
-- index: jobs_pkey, executions_job, executions_overlap
--
-- A job that is no longer what the caller saw is left alone, so whoever comes second changes nothing: a
-- frozen node, a replay after an unknown commit. The lateral lock and the update by ctid keep the plan a
-- walk over the batch, whatever the statistics say. `p_take` waits for the jobs' locks instead of passing
-- over them: for what stays overdue. `p_replace`: some jobs of the batch cancel what runs. `p_runs_left`
-- is how often a job may still fire; what overlaps does not count, so only here it is known. A null in
-- `p_next_run_ats`, `p_settled` or `p_fire_ats` is the next instant, the expected one, the fire's own.
create or replace function foliot.fire(
  p_job_ids uuid[], p_tenant_ids uuid[], p_queues text[], p_expected timestamptz[],
  p_schedule_versions integer[], p_next_instants timestamptz[], p_next_run_ats timestamptz[],
  p_settled timestamptz[], p_runs_left bigint[],
  p_fire_jobs integer[], p_fire_ids uuid[], p_fire_instants timestamptz[], p_fire_ats timestamptz[],
  p_skip_jobs integer[], p_skip_froms timestamptz[], p_skip_tos timestamptz[],
  p_skip_counts bigint[], p_skip_reasons text[], p_take boolean, p_replace boolean, p_now timestamptz
) returns table (job integer, fired bigint, skipped bigint)
language plpgsql
set enable_seqscan = off
as $$
declare
  moment timestamptz;
begin
  if p_take then
    perform from foliot.jobs j where j.id = any(p_job_ids) order by j.id for no key update;
  end if;
  perform foliot.lock_flows(p_queues, p_tenant_ids);
  moment := coalesce(p_now, clock_timestamp());
  return query
  with due as materialized (
    select x.n::integer as n, x.next_instant, coalesce(x.next_run_at, x.next_instant) as next_run_at,
           coalesce(x.settled, x.expected) as settled, x.runs_left, j.*, live.*
      from unnest(p_job_ids, p_queues, p_expected, p_schedule_versions, p_next_instants, p_next_run_ats,
                  p_settled, p_runs_left) with ordinality
             x(job_id, queue, expected, schedule_version, next_instant, next_run_at, settled, runs_left, n)
     cross join lateral (
           select j.ctid as tid, j.overlap_policy from foliot.jobs j
            where j.id = x.job_id and j.next_instant = x.expected and j.queue = x.queue
              and j.schedule_version = x.schedule_version and j.status = 'ACTIVE'
              for no key update skip locked) j
     cross join lateral (
           select coalesce((select true from foliot.executions e
                             where e.job_id = x.job_id and e.trigger in ('SCHEDULE', 'AFTER')
                               and j.overlap_policy <> 'ALLOW' limit 1), false) as busy,
                  coalesce((select true from foliot.executions e
                             where e.job_id = x.job_id and e.trigger in ('SCHEDULE', 'AFTER')
                               and e.status = 'WAITING' and e.hold = 'OVERLAP'
                               and j.overlap_policy = 'QUEUE_ONE' limit 1), false) as held) live),
  decided as materialized (
    select f.n, f.id, f.instant, coalesce(f.run_at, f.instant) as run_at,
           case when d.overlap_policy = 'ALLOW' then 'START'
                when d.overlap_policy = 'CANCEL_PREVIOUS' and f.followed then 'SKIP'
                when not d.busy and (f.k = 1 or d.overlap_policy = 'CANCEL_PREVIOUS') then 'START'
                when d.overlap_policy in ('QUEUE_ALL', 'CANCEL_PREVIOUS') then 'HOLD'
                when d.overlap_policy = 'QUEUE_ONE' and not d.held and f.k = 2 - d.busy::integer then 'HOLD'
                else 'SKIP' end as decision
      from (select w.*, row_number() over job as k, lead(true, 1, false) over job as followed
              from unnest(p_fire_jobs, p_fire_ids, p_fire_instants, p_fire_ats) w(n, id, instant, run_at)
            window job as (partition by w.n order by w.instant)) f
      join due d on d.n = f.n),
  tally as materialized (
    select d.*, coalesce(t.fired, 0) as fired,
           d.next_instant is null or coalesce(t.fired >= d.runs_left, false) as last
      from due d left join (select c.n, count(*) filter (where c.decision <> 'SKIP') as fired
                              from decided c group by c.n) t on t.n = d.n),
  advanced as (
    update foliot.jobs j
       set next_instant = case when not t.last then t.next_instant end,
           next_run_at = case when not t.last then t.next_run_at end,
           status = case when t.last then 'COMPLETED' else j.status end,
           last_instant = greatest(j.last_instant, t.settled), fired_count = j.fired_count + t.fired
      from tally t where j.ctid = t.tid
    returning t.n, t.fired, j.id as job_id, j.tenant_id, j.version, j.schedule_version, j.queue,
              j.lane_id, j.priority, j.start_deadline_seconds, j.limit_keys, j.notify, j.name, j.tags),
  placed as materialized (
    select c.id, c.instant, c.run_at, a.*,
           c.decision = 'START' and a.limit_keys is null and c.run_at <= moment as ready,
           case when c.decision = 'HOLD' then 'OVERLAP'
                when c.run_at <= moment and a.limit_keys is not null then 'LIMIT' end as hold
      from decided c join advanced a on a.n = c.n where c.decision <> 'SKIP'),
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
           p.run_at, case when p.ready then moment end, p.run_at + make_interval(secs => p.start_deadline_seconds),
           p.limit_keys, p.hold, p.notify, p.name, p.tags, moment
      from placed p
      left join starts s on p.ready and (s.queue, s.lane_id, s.tenant_id, s.priority)
                                      = (p.queue, p.lane_id, p.tenant_id, p.priority)
        on conflict (id) do nothing),
  missed as materialized (
    select s.* from unnest(p_skip_jobs, p_skip_froms, p_skip_tos, p_skip_counts, p_skip_reasons)
                      s(n, from_instant, to_instant, count, reason)
     union all
    select c.n, c.instant, c.instant, 1, 'OVERLAP' from decided c where c.decision = 'SKIP'),
  recorded as (
    insert into foliot.skips
           (job_id, tenant_id, schedule_version, from_instant, to_instant, count, reason, recorded_at)
    select a.job_id, a.tenant_id, a.schedule_version, m.from_instant, m.to_instant, m.count, m.reason, moment
      from missed m join advanced a on a.n = m.n
        on conflict (job_id, from_instant) do nothing)
  select a.n, a.fired, coalesce(m.skipped, 0)
    from advanced a
    left join (select m.n, sum(m.count)::bigint as skipped from missed m group by m.n) m on m.n = a.n;
  if p_replace then perform foliot.cancel_previous(p_fire_ids, moment); end if;
end
$$;
