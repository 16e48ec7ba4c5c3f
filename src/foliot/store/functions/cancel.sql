-- purpose: end what has not been claimed; ask what runs to stop
-- caller: sql executions/cancel, function cancel_previous, function cancel_waiting
-- transition: execution CANCEL: PENDING -> CANCELLED, execution CANCEL: WAITING -> CANCELLED,
--   execution CANCEL: QUEUED -> CANCELLED, execution CANCEL: RETRYING -> CANCELLED
-- fence: worker_id is null
-- index: executions_pkey, job_parents_pkey
--
-- The rows are locked by a statement of their own, in the order given (sorted, so that two cancels
-- never wait for each other): whoever claimed, released or finished one meanwhile is seen by the next.
create or replace function foliot.cancel(p_ids uuid[], p_error jsonb, p_moment timestamptz)
returns table (id uuid, status text)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  perform from unnest(p_ids) t(id)
    cross join lateral (select from foliot.executions e where e.id = t.id for update) e;
  return query
  with named as materialized (
    select e.ctid as tid, e.worker_id from unnest(p_ids) x(id)
     cross join lateral (select e.ctid, e.worker_id from foliot.executions e
                          where e.id = x.id offset 0) e),
  gone as (
    delete from foliot.executions e
     where e.ctid = any(array(select n.tid from named n where n.worker_id is null))
    returning e as row),
  recorded as (
    insert into foliot.attempts
    select a.* from gone g
     cross join lateral foliot.as_attempt(
             g.row, 'CANCELLED', true, foliot.end_after((g.row).id, (g.row).fence, p_moment), null, null,
             false, p_error, null) a
        on conflict do nothing),
  notices as (
    insert into foliot.deliveries (id, fence, tenant_id, job_id, status, created_at, next_attempt_at)
    select (g.row).id, (g.row).fence, (g.row).tenant_id, (g.row).job_id, 'CANCELLED', p_moment, p_moment
      from gone g where (g.row).notify
        on conflict do nothing),
  completed as (
    insert into foliot.completions (child_id, parent_id, execution_id, tenant_id, finished_at, status)
    select p.child_id, (g.row).job_id, (g.row).id, (g.row).tenant_id, p_moment, 'CANCELLED'
      from gone g
     cross join lateral (select p.child_id from foliot.job_parents p
                          where p.parent_id = (g.row).job_id and not p.needs_success offset 0) p
     where exists (select from foliot.job_parents)),
  asked as (
    update foliot.executions e
       set cancel_requested_at = coalesce(e.cancel_requested_at, p_moment)
     where e.ctid = any(array(select n.tid from named n where n.worker_id is not null))
    returning e.id)
  select (g.row).id, 'CANCELLED' from gone g
   union all
  select a.id, 'RUNNING' from asked a;
end
$$;
