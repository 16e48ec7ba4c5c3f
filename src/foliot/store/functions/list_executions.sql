-- purpose: a page of a tenant's executions, live and finished, the newest first
-- caller: sql executions/list_newest
-- transition: none
-- fence: none
-- index: executions_pkey, attempts_identity
--
-- Ids begin with the time: their order is that of time, and stays the same when an execution ends. Each day
-- is walked from its last id down, whatever statistics say; live and history are read at one moment.
-- What ran has ended after it was due, so earlier days are spared where only such are asked for.
create or replace function foliot.list_executions(
  p_tenant_id uuid, p_statuses text[], p_triggers text[], p_queue text, p_from timestamptz,
  p_to timestamptz, p_worker_id uuid, p_tags text[], p_labels jsonb, p_trace_id text, p_priority smallint,
  p_dag_run_id uuid, p_before uuid, p_limit integer
) returns table (id uuid, finished_at timestamptz)
language plpgsql stable
set enable_seqscan = off
set enable_sort = off
as $$
declare
  top uuid := coalesce(p_before, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  since timestamptz := case when p_statuses && '{CANCELLED,SKIPPED}' then '-infinity'
                            when p_statuses is null then '-infinity'
                            else coalesce(p_from - interval '1 day', '-infinity') end;
begin
  return query
  select t.id, t.finished_at
    from ((select e.id, null::timestamptz as finished_at from foliot.executions e
           where e.tenant_id = p_tenant_id and e.id < top
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
           order by e.id desc limit p_limit)
           union all
          (select a.id, a.finished_at from foliot.attempts a
           where a.tenant_id = p_tenant_id and a.id < top and a.final and a.finished_at >= since
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
           order by a.id desc limit p_limit)) t
   order by t.id desc
   limit p_limit;
end
$$;
