-- purpose: take slots back from rows that nobody is there to claim: their queue is paused, no worker serves
--   their lane, or they stand in a full queue and are more than it has places for; how many
-- caller: sql limits/withdraw
-- transition: execution HOLD: QUEUED -> WAITING
-- fence: worker_id is null, rank is not null
-- index: executions_slot_1, lanes_pkey
--
-- Or else they would keep what else is under the same limits from running. All who hold a slot are looked
-- at; the limits themselves say how many they can be. What was let go within `p_seconds` is left alone. Of
-- those in a full queue the last by rank go: as many stay, for each first key, as admit would let stand there.
create or replace function foliot.withdraw(p_batch integer, p_seconds float8, p_now timestamptz)
returns bigint
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  moment timestamptz := coalesce(p_now, statement_timestamp());
  since timestamptz := moment - make_interval(secs => p_seconds);
  withdrawn bigint;
begin
  with holders as materialized (
    select e.ctid as tid, e.queue, e.lane_id, e.tenant_id, e.limit_keys[1] as key, e.worker_id, e.rank, e.queued_at
      from foliot.executions e
     where e.limit_keys[1] is not null and e.rank is not null
     order by e.limit_keys[1]),
  ready as materialized (
    select h.* from holders h where h.worker_id is null),
  idle as materialized (
    select r.lane_id, r.tenant_id
      from (select distinct r.lane_id, r.tenant_id from ready r where r.queued_at <= since) r
     where not foliot.is_served(r.lane_id, r.tenant_id)),
  full_queues as materialized (
    select q.queue, (q.known ->> 'places')::bigint as places
      from (select q.queue, foliot.queue_places(q.queue, moment) as known
              from (select distinct r.queue from ready r where r.queued_at <= since) q) q
     where (q.known ->> 'full')::boolean),
  stranded as materialized (
    select r.tid from ready r join idle i using (lane_id, tenant_id) where r.queued_at <= since
     union
    select r.tid
      from (select r.tid, r.queued_at, f.places,
                   row_number() over (partition by r.queue, r.key order by r.rank, r.tid) as turn
              from ready r join full_queues f using (queue)) r
     where r.turn > r.places and r.queued_at <= since)
  update foliot.executions e
     set status = 'WAITING', hold = 'LIMIT', rank = null, queued_at = null
   where e.ctid = any(array(
           select o.ctid from foliot.executions o
            where o.ctid = any(array(select s.tid from stranded s limit p_batch))
              and o.worker_id is null and o.rank is not null
              for no key update skip locked));
  get diagnostics withdrawn = row_count;
  return withdrawn;
end
$$;
