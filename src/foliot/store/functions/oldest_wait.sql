-- purpose: since when the one that has waited longest in a queue could have been claimed
-- caller: sql queues/list_page
-- transition: none
-- fence: none
-- index: executions_flow
--
-- Within a flow the first in rank has waited longest; so it takes one step a flow, `p_flows` at the most.
create or replace function foliot.oldest_wait(p_queue text, p_flows integer)
returns timestamptz
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  oldest timestamptz;
  head record;
  tenant uuid := '00000000-0000-0000-0000-000000000000';
  urgency smallint := 0;
begin
  for step in 1 .. p_flows loop
    select e.tenant_id, e.priority, e.queued_at into head
      from foliot.executions e
     where e.queue = p_queue and e.worker_id is null and e.rank is not null
       and (e.tenant_id, e.priority) > (tenant, urgency)
     order by e.tenant_id, e.priority, e.rank limit 1;
    exit when not found;
    oldest := least(oldest, head.queued_at);
    tenant := head.tenant_id;
    urgency := head.priority;
  end loop;
  return oldest;
end
$$;
