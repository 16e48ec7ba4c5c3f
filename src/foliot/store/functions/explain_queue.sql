-- purpose: what holds a queue as a whole: a pause, or a limit with who of a tenant's has a slot under it
-- caller: function explain
-- transition: none
-- fence: none
-- index: queues_pkey, executions_queue_slot
--
-- Counted as a claim counts: no further than the limit.
create or replace function foliot.explain_queue(p_queue text, p_tenant_id uuid)
returns jsonb
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (
    select jsonb_build_object(
             'paused_at', q.paused_at, 'note', q.status_note, 'at_most', q.concurrency_limit,
             'used', (select count(*)
                        from (select from foliot.executions e
                               where e.queue = p_queue and e.queue_slot and e.status = 'RUNNING'
                               limit q.concurrency_limit) r),
             'holders', foliot.explain_holders(array(
               select e.id from foliot.executions e
                where e.queue = p_queue and e.queue_slot and e.status = 'RUNNING'
                  and e.tenant_id = p_tenant_id and q.concurrency_limit is not null limit 3)))
      from foliot.queues q where q.name = p_queue);
end
$$;
