-- purpose: a page of a job's executions, live and finished, the newest first
-- caller: sql executions/list_of_job
-- transition: none
-- fence: none
-- index: executions_job, attempts_job, job_versions_pkey
--
-- As list_executions, which says more; a job with few executions is found by its own index and sorted.
create or replace function foliot.list_job_executions(
  p_tenant_id uuid, p_job_id uuid, p_statuses text[], p_triggers text[], p_queue text, p_from timestamptz,
  p_to timestamptz, p_worker_id uuid, p_tags text[], p_labels jsonb, p_trace_id text, p_priority smallint,
  p_dag_run_id uuid, p_handler text, p_error text, p_retried boolean, p_min_seconds float8, p_before uuid,
  p_limit integer, p_now timestamptz
) returns table (id uuid, finished_at timestamptz)
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  moment timestamptz := coalesce(p_now, statement_timestamp());
  top uuid := coalesce(p_before, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  since timestamptz := case when p_statuses && '{CANCELLED,SKIPPED}' then '-infinity'
                            when p_statuses is null then '-infinity'
                            else coalesce(p_from - interval '1 day', '-infinity') end;
begin
  return query
  select t.id, t.finished_at
    from ((select e.id, null::timestamptz as finished_at from foliot.executions e
           where e.tenant_id = p_tenant_id and e.job_id = p_job_id and e.id < top
           and (p_statuses is null or e.status = any(p_statuses))
           and (p_triggers is null or e.trigger = any(p_triggers))
           and (p_queue is null or e.queue = p_queue)
           and (p_from is null or e.scheduled_time >= p_from)
           and (p_to is null or e.scheduled_time < p_to)
           and (p_worker_id is null or e.worker_id = p_worker_id)
           and (p_tags is null or e.tags @> p_tags)
           and (p_labels is null or e.labels @> p_labels)
           and (p_trace_id is null or e.trace_id = p_trace_id)
           and (p_priority is null or e.priority = p_priority)
           and (p_dag_run_id is null or e.dag_run_id = p_dag_run_id)
           and (p_handler is null or (
                select true from foliot.job_versions v
                 where v.job_id = e.job_id and v.version = e.job_version
                   and v.definition -> 'target' ->> 'type' = 'HANDLER'
                   and v.definition -> 'target' ->> 'name' = p_handler limit 1))
           and (p_error is null or e.status = 'RETRYING' and (
                select true from foliot.attempts a
                 where a.id = e.id and a.fence = e.fence and a.finished_at >= e.created_at - interval '1 day'
                   and strpos(lower(concat_ws(' ', a.error ->> 'type', a.error ->> 'message')),
                              lower(p_error)) > 0 limit 1))
           and (p_retried is null or (e.attempt_number > 1 or e.status = 'RETRYING') = p_retried)
           and (p_min_seconds is null
                or e.status = 'RUNNING' and e.claimed_at <= moment - make_interval(secs => p_min_seconds))
           order by e.id desc limit p_limit)
           union all
          (select a.id, a.finished_at from foliot.attempts a
           where a.tenant_id = p_tenant_id and a.job_id = p_job_id and a.id < top and a.final and a.finished_at >= since
           and (p_statuses is null or a.status = any(p_statuses))
           and (p_triggers is null or a.trigger = any(p_triggers))
           and (p_queue is null or a.queue = p_queue)
           and (p_from is null or a.scheduled_time >= p_from)
           and (p_to is null or a.scheduled_time < p_to)
           and (p_worker_id is null or a.worker_id = p_worker_id)
           and (p_tags is null or a.tags @> p_tags)
           and (p_labels is null or a.labels @> p_labels)
           and (p_trace_id is null or a.trace_id = p_trace_id)
           and (p_priority is null or a.priority = p_priority)
           and (p_dag_run_id is null or a.dag_run_id = p_dag_run_id)
           and (p_handler is null or (
                select true from foliot.job_versions v
                 where v.job_id = a.job_id and v.version = a.job_version
                   and v.definition -> 'target' ->> 'type' = 'HANDLER'
                   and v.definition -> 'target' ->> 'name' = p_handler limit 1))
           and (p_error is null
                or strpos(lower(concat_ws(' ', a.error ->> 'type', a.error ->> 'message')),
                          lower(p_error)) > 0)
           and (p_retried is null or (a.attempt_number > 1) = p_retried)
           and (p_min_seconds is null or a.finished_at - a.started_at >= make_interval(secs => p_min_seconds))
           order by a.id desc limit p_limit)) t
   order by t.id desc
   limit p_limit;
end
$$;
