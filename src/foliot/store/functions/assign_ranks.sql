-- purpose: a rank for each row of a batch, in the order given; the rule of core.rank
-- caller: function admit, function enqueue, function release, function release_overlaps
-- transition: none
-- fence: none
-- index: see flow_start
--
-- Call it under lock_flows, in a statement that began after the lock was had: it reads what others
-- have committed by then.
create or replace function foliot.assign_ranks(
  p_queues text[], p_lane_ids integer[], p_tenant_ids uuid[], p_priorities smallint[]
) returns table (n bigint, rank float8)
language plpgsql stable rows 1000
set enable_seqscan = off
as $$
begin
  return query
  with batch as materialized (
    select b.* from unnest(p_queues, p_lane_ids, p_tenant_ids, p_priorities)
                      with ordinality b(queue, lane_id, tenant_id, priority, ordinal))
  select b.ordinal,
         s.start + s.step * row_number() over (partition by s.flow order by b.ordinal)
    from batch b
    join foliot.flow_starts(p_queues, p_lane_ids, p_tenant_ids, p_priorities) s
      on s.queue = b.queue and s.lane_id = b.lane_id
     and s.tenant_id = b.tenant_id and s.priority = b.priority;
end
$$;
