-- purpose: where a flow's next row goes: behind `start`, one `step` each; the rule of core.rank
-- caller: function flow_starts
-- transition: none
-- fence: none
-- index: queue_clocks_queue, queue_clocks_pkey, executions_claim, executions_flow
--
-- Virtual time belongs to the queue, but a lane that is served slowly is ranked by its own head, so that
-- a newcomer does not stand behind the whole backlog there. Every scan begins above a virtual time:
-- below it lie only the dead entries of what was claimed. `p_batch` has the priorities that the tenant
-- uses in the batch at hand; they are active too. `order by … limit 1` and no `exists` asks for waiting
-- rows: an `exists` may be answered by hashing all of them, and without the order any index of waiting
-- rows will do, even if it must be read to its end. Plain SQL in one SELECT, so that it is inlined.
create or replace function foliot.flow_start(
  p_queue text, p_lane_id integer, p_tenant_id uuid, p_priority smallint, p_batch smallint[]
) returns table (start float8, step float8)
language sql stable
as $$
  select greatest(base.virtual_time, coalesce(last.rank, '-infinity')),
         shares.total / (coalesce(tenant.weight, 1) * power(2.0::float8, (10 - p_priority) * 5.0 / 9))
    from (select coalesce((select c.virtual_time from foliot.queue_clocks c
                            where c.queue = p_queue
                            order by c.virtual_time desc limit 1), 0) as virtual_time) queue
   cross join lateral (
         select coalesce(least(queue.virtual_time,
                               (select e.rank from foliot.executions e
                                 where e.lane_id = p_lane_id and e.worker_id is null
                                   and e.rank is not null
                                   and e.rank > coalesce((select c.virtual_time
                                                            from foliot.queue_clocks c
                                                           where c.lane_id = p_lane_id
                                                           order by c.virtual_time desc limit 1),
                                                         '-infinity')
                                 order by e.rank limit 1)),
                         queue.virtual_time) as virtual_time) base
    left join lateral (
         select e.rank from foliot.executions e
          where e.queue = p_queue and e.tenant_id = p_tenant_id and e.priority = p_priority
            and e.worker_id is null and e.rank is not null and e.rank > base.virtual_time
          order by e.rank desc limit 1) last on true
   cross join lateral (
         select sum(power(2.0::float8, (10 - p.priority) * 5.0 / 9)) as total
           from generate_series(1, 10) p(priority)
          where p.priority = any(p_batch)
             or (select true from foliot.executions e
                  where e.queue = p_queue and e.tenant_id = p_tenant_id
                    and e.priority = p.priority and e.worker_id is null
                    and e.rank is not null and e.rank > queue.virtual_time
                  order by e.rank limit 1)) shares
    left join foliot.tenants tenant on tenant.id = p_tenant_id
$$;
