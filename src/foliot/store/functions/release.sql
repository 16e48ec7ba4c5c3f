-- purpose: let rows go whose time has come: parked, snoozed, handed back, retried, held by a breaker
-- caller: sql executions/release_due
-- transition: execution RELEASE: PENDING -> QUEUED, execution RELEASE: RETRYING -> QUEUED,
--   execution RELEASE: WAITING -> QUEUED, execution HOLD: PENDING -> WAITING,
--   execution HOLD: QUEUED -> WAITING, execution HOLD: RETRYING -> WAITING
-- fence: rank is null, status, available_at
-- index: executions_release
--
-- What is due is read twice. First without a lock, to know whose flows to lock; then by its place under
-- it, when what another released meanwhile no longer fits. The flows come before the rows, as in every
-- function that ranks. A row under limits is not ranked here: it goes to wait for a slot. `p_low` passes
-- over the dead entries of what was released before; null looks at everything. `num_nulls` keeps the second
-- reading to the places: by `rank is null`, the rows would be looked for among all that are due.
create or replace function foliot.release(p_low timestamptz, p_batch integer, p_now timestamptz)
returns table (seen bigint, released bigint, held bigint, moment timestamptz, queues text[])
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  due tid[];
  tenant_ids uuid[];
  ready tid[];
  limited tid[];
  told timestamptz := coalesce(p_now, statement_timestamp());
begin
  with found as materialized (
    select e.ctid as tid, e.queue, e.tenant_id
      from foliot.executions e
     where e.rank is null
       and (e.status in ('PENDING', 'QUEUED', 'RETRYING') or e.hold = 'BREAKER')
       and e.available_at <= told and e.available_at >= coalesce(p_low, '-infinity')
     order by e.available_at limit p_batch)
  select array(select f.tid from found f), array_agg(o.queue), array_agg(o.tenant_id)
    into due, queues, tenant_ids
    from (select f.queue, f.tenant_id from found f group by 1, 2) o;
  perform foliot.lock_flows(queues, tenant_ids);
  select array_agg(e.tid order by e.available_at, e.id) filter (where not e.limited),
         array_agg(e.tid) filter (where e.limited)
    into ready, limited
    from (select e.ctid as tid, e.id, e.available_at, e.limit_keys is not null as limited
            from foliot.executions e
           where e.ctid = any(due) and num_nulls(e.rank) = 1 and e.available_at <= told
             and (e.status in ('PENDING', 'QUEUED', 'RETRYING') or e.hold = 'BREAKER')
             for no key update skip locked) e;
  update foliot.executions e set status = 'WAITING', hold = 'LIMIT' where e.ctid = any(limited);
  return query
  select coalesce(cardinality(due), 0)::bigint, (select count(*) from foliot.queue_up(ready, told)),
         coalesce(cardinality(limited), 0)::bigint, told, queues;
end
$$;
