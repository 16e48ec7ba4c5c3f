-- purpose: take slots back from rows that nobody is there to claim: their queue is paused, or no worker
--   serves their lane; how many
-- caller: sql limits/withdraw
-- transition: execution HOLD: QUEUED -> WAITING
-- fence: worker_id is null, rank is not null
-- index: executions_slot_1, lanes_pkey
--
-- Or else they would keep what else is under the same limits from running. All who hold a slot are looked
-- at; the limits themselves say how many they can be. What was let go within `p_seconds` is left alone.
create or replace function foliot.withdraw(p_batch integer, p_seconds float8, p_now timestamptz)
returns bigint
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  since timestamptz := coalesce(p_now, statement_timestamp()) - make_interval(secs => p_seconds);
  withdrawn bigint;
begin
  with holders as materialized (
    select e.ctid as tid, e.lane_id, e.tenant_id, e.worker_id, e.queued_at
      from foliot.executions e
     where e.limit_keys[1] is not null and e.rank is not null
     order by e.limit_keys[1]),
  ready as materialized (
    select h.* from holders h where h.worker_id is null and h.queued_at <= since),
  idle as materialized (
    select r.lane_id, r.tenant_id from (select distinct r.lane_id, r.tenant_id from ready r) r
     where not foliot.is_served(r.lane_id, r.tenant_id))
  update foliot.executions e
     set status = 'WAITING', hold = 'LIMIT', rank = null, queued_at = null
   where e.ctid = any(array(
           select o.ctid from foliot.executions o
            where o.ctid = any(array(select r.tid from ready r join idle i using (lane_id, tenant_id)
                                      limit p_batch))
              and o.worker_id is null and o.rank is not null
              for no key update skip locked));
  get diagnostics withdrawn = row_count;
  return withdrawn;
end
$$;
