-- purpose: all that is known about why a live execution of a tenant does not run, or where it runs; null if
--   there is no such row
-- caller: sql executions/explain
-- transition: none
-- fence: none
-- index: executions_pkey, executions_claim, executions_held, executions_job, executions_overlap, jobs_pkey
--
-- A stable function sees one state of the tables, also in the functions that it calls: what is told fits
-- together. Every count ends at `p_count`. Of others than the tenant only numbers are told. Which of it
-- stands in the way, and in which order, is the rule of core.explain.
create or replace function foliot.explain(
  p_id uuid, p_tenant_id uuid, p_since timestamptz, p_silent_seconds float8, p_lease_seconds float8,
  p_count integer, p_now timestamptz
) returns jsonb
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
set timezone = 'UTC'
as $$
declare
  moment timestamptz := coalesce(p_now, statement_timestamp());
  e foliot.executions;
  known jsonb;
begin
  select x.* into e from foliot.executions x where x.id = p_id and x.tenant_id = p_tenant_id;
  if not found then
    return null;
  end if;
  known := jsonb_build_object(
    'moment', moment, 'execution_id', e.id, 'tenant_id', e.tenant_id, 'job_id', e.job_id, 'job_name', e.job_name,
    'status', e.status, 'hold', e.hold, 'hold_detail', e.hold_detail, 'available_at', e.available_at,
    'ready', e.rank is not null and e.worker_id is null, 'queued_at', e.queued_at, 'start_by', e.start_by,
    'attempt_number', e.attempt_number, 'claimed_at', e.claimed_at, 'dag_run_id', e.dag_run_id,
    'cancel_requested_at', e.cancel_requested_at, 'progress', e.progress,
    'job_status', (select j.status from foliot.jobs j where j.id = e.job_id),
    'max_attempts', coalesce((select (v.definition -> 'retry_policy' ->> 'max_attempts')::integer
                                from foliot.job_versions v
                               where v.job_id = e.job_id and v.version = e.job_version), 4),
    'timeout_seconds', coalesce((select (v.definition ->> 'timeout_seconds')::float8
                                   from foliot.job_versions v
                                  where v.job_id = e.job_id and v.version = e.job_version), 300));
  if e.worker_id is not null then
    return known || jsonb_build_object('worker',
      (select jsonb_build_object(
                'worker_id', e.worker_id, 'name', coalesce(w.name, e.worker_id::text),
                'status', coalesce(w.status, 'DEAD'), 'is_process', coalesce(w.capacity > 0, true),
                'last_heartbeat_at', coalesce(w.last_heartbeat_at, e.claimed_at))
         from (select) x left join foliot.workers w on w.id = e.worker_id));
  end if;
  known := known || jsonb_build_object(
    'lane', (select to_jsonb(l) from foliot.lanes l where l.id = e.lane_id),
    'queue', foliot.explain_queue(e.queue, e.tenant_id),
    'workers', foliot.explain_workers(e.tenant_id, p_silent_seconds, moment),
    'schedulers', (select jsonb_build_object(
                            'live', count(*) filter (where s.last_seen_at
                                                           > moment - make_interval(secs => p_lease_seconds)),
                            'last_seen_at', max(s.last_seen_at))
                     from foliot.schedulers s));
  if e.rank is not null then
    return known || (
      select jsonb_build_object('ahead', count(*), 'own_ahead', count(*) filter (where a.own))
        from (select a.tenant_id = e.tenant_id as own from foliot.executions a
               where a.lane_id = e.lane_id and a.worker_id is null and a.rank is not null and a.rank < e.rank
               order by a.rank desc limit p_count) a);
  end if;
  if e.status = 'RETRYING' then
    known := known || jsonb_build_object('error', (
      select a.error from foliot.attempts a
       where a.id = e.id and a.finished_at >= p_since order by a.fence desc limit 1));
  end if;
  if e.hold = 'OVERLAP' then
    known := known || jsonb_build_object(
      'under_way', foliot.explain_holders(array(
        select o.id from foliot.executions o
         where o.job_id = e.job_id and o.trigger in ('SCHEDULE', 'AFTER')
           and o.hold is distinct from 'OVERLAP' limit 3)),
      'ahead', (select count(*)
                  from (select from foliot.executions o
                         where o.job_id = e.job_id and o.status = 'WAITING' and o.hold = 'OVERLAP'
                           and (o.scheduled_time, o.id) < (e.scheduled_time, e.id) limit p_count) o));
  end if;
  if e.limit_keys is not null then
    known := known || jsonb_build_object(
      'limits', foliot.explain_limits(e.limit_keys, moment),
      'alike', (select count(*)
                  from (select from foliot.executions o
                         where o.status = 'WAITING' and o.hold = 'LIMIT'
                           and o.limit_keys collate "C" = e.limit_keys limit p_count) o));
  end if;
  return known;
end
$$;
