-- purpose: for each flow of a batch and lane, where its next row goes and how far apart its rows are
-- caller: function enqueue, function fire, function queue_up
-- transition: none
-- fence: none
-- index: see flow_start
--
-- Call it under lock_flows, in a statement that began after the lock was had: it reads what others
-- have committed by then. The rows of one `flow` are counted together, whatever their lanes: the k-th
-- has the rank start + k × step of its lane. The arrays may name a flow more than once.
create or replace function foliot.flow_starts(
  p_queues text[], p_lane_ids integer[], p_tenant_ids uuid[], p_priorities smallint[]
) returns table (
  queue text, lane_id integer, tenant_id uuid, priority smallint, flow bigint, start float8, step float8
)
language plpgsql stable rows 10
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = auto
as $$
begin
  return query
  with flows as materialized (
    select b.queue, b.lane_id, b.tenant_id, b.priority
      from unnest(p_queues, p_lane_ids, p_tenant_ids, p_priorities) b(queue, lane_id, tenant_id, priority)
     group by 1, 2, 3, 4),
  active as materialized (
    select f.queue, f.tenant_id, array_agg(distinct f.priority) as priorities
      from flows f group by 1, 2)
  select f.*, dense_rank() over (order by f.queue, f.tenant_id, f.priority), s.start, s.step
    from flows f
    join active a on a.queue = f.queue and a.tenant_id = f.tenant_id
   cross join lateral
         foliot.flow_start(f.queue, f.lane_id, f.tenant_id, f.priority, a.priorities) s;
end
$$;
