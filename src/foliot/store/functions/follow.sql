-- purpose: fire jobs for the ends of their parents, or record why they do not, and begin to wait anew
-- caller: sql dependents/follow
-- transition: none
-- fence: under the lock of the child, held since gather_completions
-- index: jobs_pkey, executions_job, job_parents_child, limits_pkey
--
-- A fire with a reason is a skip. The overlap policy is that of scheduled fires: START, or HOLD until what
-- runs is over, or a skip. What starts is parked for the release, which ranks it; so no flow is locked here.
-- It is available from now on, however long ago the parents ended: the child may have been paused.
create or replace function foliot.follow(
  p_job_ids uuid[], p_execution_ids uuid[], p_instants timestamptz[], p_reasons text[], p_now timestamptz
) returns table (child_id uuid, outcome text)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  moment timestamptz := coalesce(p_now, clock_timestamp());
begin
  return query
  with fires as materialized (
    select x.*, j.*,
           coalesce((select true from foliot.executions e
                      where e.job_id = x.id and e.trigger in ('SCHEDULE', 'AFTER') limit 1), false) as busy,
           coalesce((select true from foliot.executions e
                      where e.job_id = x.id and e.trigger in ('SCHEDULE', 'AFTER')
                        and e.status = 'WAITING' and e.hold = 'OVERLAP' limit 1), false) as held
      from unnest(p_job_ids, p_execution_ids, p_instants, p_reasons) x(id, execution_id, instant, reason)
     cross join lateral (select j.ctid as tid, j.overlap_policy as policy
                           from foliot.jobs j where j.id = x.id offset 0) j),
  placed as materialized (
    select f.*, case when f.reason is not null then 'SKIP'
                     when f.policy = 'ALLOW' or not f.busy then 'START'
                     when f.policy in ('QUEUE_ALL', 'CANCEL_PREVIOUS') then 'HOLD'
                     when f.policy = 'QUEUE_ONE' and not f.held then 'HOLD' else 'SKIP' end as place
      from fires f),
  advanced as (
    update foliot.jobs j
       set last_instant = greatest(j.last_instant, p.instant),
           fired_count = j.fired_count + (p.place <> 'SKIP')::integer,
           sole_id = case when p.place = 'SKIP' then j.sole_id end
      from placed p where j.ctid = p.tid
    returning p.execution_id, p.instant, p.reason, p.place, j.*),
  inserted as (
    insert into foliot.executions
           (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id, priority, scheduled_time,
            available_at, start_by, limit_keys, hold, notify, job_name, tags, created_at)
    select a.execution_id, a.tenant_id, a.id, a.version,
           case a.place when 'HOLD' then 'WAITING' else 'PENDING' end, 'AFTER', a.queue, a.lane_id,
           a.priority, a.instant, greatest(a.instant, moment),
           greatest(a.instant, moment) + make_interval(secs => a.start_deadline_seconds),
           foliot.tenant_keys(array[a.tenant_id]) || a.limit_keys,
           case a.place when 'HOLD' then 'OVERLAP' end, a.notify, a.name, a.tags, moment
      from advanced a where a.place <> 'SKIP'
        on conflict (id) do nothing),
  recorded as (
    insert into foliot.skips
           (job_id, tenant_id, schedule_version, from_instant, to_instant, count, reason, recorded_at)
    select a.id, a.tenant_id, a.schedule_version, a.instant, a.instant, 1, coalesce(a.reason, 'OVERLAP'),
           moment
      from advanced a where a.place = 'SKIP'
        on conflict (job_id, from_instant) do nothing),
  waiting as (
    update foliot.job_parents p set execution_id = null, finished_at = null, status = null
     where p.child_id = any(p_job_ids) and p.execution_id is not null)
  select a.id, a.place from advanced a;
  perform foliot.cancel_previous(p_execution_ids, moment);
end
$$;
