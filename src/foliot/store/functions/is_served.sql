-- purpose: whether somebody is there who would claim a tenant's rows of a lane
-- caller: function held_groups, function unserved, function withdraw
-- transition: none
-- fence: none
-- index: lanes_pkey, queues_pkey, workers_heartbeat
--
-- By the rule of lanes/list_servable. While there is no worker at all, nobody is kept from anything.
create or replace function foliot.is_served(p_lane_id integer, p_tenant_id uuid)
returns boolean
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (select (select q.paused_at from foliot.queues q where q.name = l.queue) is null
                 and (not exists (select from foliot.workers w where w.status = 'ACTIVE' and w.capacity > 0)
                      or exists (select from foliot.workers w
                                  where w.status = 'ACTIVE' and w.capacity > 0
                                    and (w.tenant_id is null or w.tenant_id = p_tenant_id)
                                    and (l.queue = any(w.queues) or '*' = any(w.queues))
                                    and (l.region is null or l.region = w.region)
                                    and l.requires <@ w.labels and l.target_type = any(w.target_types)
                                    and (l.handler is null or l.handler = any(w.handlers))))
            from foliot.lanes l where l.id = p_lane_id);
end
$$;
