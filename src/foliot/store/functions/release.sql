-- purpose: let rows go whose time has come: parked, snoozed, handed back, retried, held by a breaker
-- caller: sql executions/release_due
-- transition: execution RELEASE: PENDING -> QUEUED, execution RELEASE: RETRYING -> QUEUED,
--   execution RELEASE: WAITING -> QUEUED, execution HOLD: PENDING -> WAITING,
--   execution HOLD: QUEUED -> WAITING, execution HOLD: RETRYING -> WAITING
-- fence: rank is null, status, available_at
-- index: executions_release, executions_pkey
--
-- What is due is read twice. First without a lock, to know whose flows to lock; then row by row under
-- it, when what another released meanwhile no longer fits. The flows come before the rows, as in every
-- function that ranks. A row under limits is not ranked here: it goes to wait for a slot. `p_low` passes
-- over the dead entries of what was released before; null looks at everything. `is not distinct from` is
-- no index condition: each row is found by its key. `num_nulls` keeps the
-- second reading to the key: by `rank is null`, each row would be looked for among all that are due.
create or replace function foliot.release(p_low timestamptz, p_batch integer, p_now timestamptz)
returns table (seen bigint, released bigint, held bigint, moment timestamptz)
language plpgsql
set enable_seqscan = off
as $$
declare
  due_ids uuid[];
  queues text[];
  tenant_ids uuid[];
  told timestamptz := coalesce(p_now, statement_timestamp());
begin
  select array_agg(e.id order by e.available_at, e.id), array_agg(e.queue), array_agg(e.tenant_id)
    into due_ids, queues, tenant_ids
    from (select e.id, e.queue, e.tenant_id, e.available_at
            from foliot.executions e
           where e.rank is null
             and (e.status in ('PENDING', 'QUEUED', 'RETRYING') or e.hold = 'BREAKER')
             and e.available_at <= told and e.available_at >= coalesce(p_low, '-infinity')
           order by e.available_at limit p_batch) e;
  if due_ids is null then
    return query select 0::bigint, 0::bigint, 0::bigint, told;
    return;
  end if;
  perform foliot.lock_flows(queues, tenant_ids);
  return query
  with due as materialized (
    select e.tid, e.queue, e.lane_id, e.tenant_id, e.priority, e.limited,
           row_number() over (partition by e.limited order by x.n) as ordinal
      from unnest(due_ids) with ordinality x(id, n)
     cross join lateral (
           select e.ctid as tid, e.queue, e.lane_id, e.tenant_id, e.priority,
                  e.limit_keys is not null as limited
             from foliot.executions e
            where e.id = x.id and num_nulls(e.rank) = 1 and e.available_at <= told
              and (e.status in ('PENDING', 'QUEUED', 'RETRYING') or e.hold = 'BREAKER')
              for no key update skip locked) e),
  ready as materialized (
    select d.* from due d where not d.limited),
  ranks as materialized (
    select r.tid, a.rank
      from foliot.assign_ranks(array(select r.queue from ready r order by r.ordinal),
                               array(select r.lane_id from ready r order by r.ordinal),
                               array(select r.tenant_id from ready r order by r.ordinal),
                               array(select r.priority from ready r order by r.ordinal)) a
      join ready r on r.ordinal = a.n),
  queued as (
    update foliot.executions e
       set status = 'QUEUED', hold = null, rank = r.rank, queued_at = told
      from ranks r
     where e.ctid = r.tid
    returning e.id),
  parked as (
    update foliot.executions e
       set status = 'WAITING', hold = 'LIMIT'
     where e.ctid = any(array(select d.tid from due d where d.limited))
    returning e.id)
  select cardinality(due_ids)::bigint, (select count(*) from queued), (select count(*) from parked), told;
end
$$;
