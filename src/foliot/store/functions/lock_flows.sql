-- purpose: let one transaction at a time rank the rows of a queue and tenant; ends with the transaction
-- caller: function admit, function apply_key_limit, function enqueue, function fire, function release,
--   function release_overlaps
-- transition: none
-- fence: none
-- index: none
--
-- Nodes that read a flow's last rank before another's insert commits would each get a share of their
-- own: four such nodes were served 4,000 to 1,000. The keys are taken in order, so no two wait for
-- each other. In the second space of advisory locks, apart from the migrations' lock.
create or replace function foliot.lock_flows(p_queues text[], p_tenant_ids uuid[])
returns void
language plpgsql
as $$
declare
  key integer;
begin
  for key in
    select distinct hashtext(f.queue || ' ' || f.tenant_id::text)
      from (select distinct u.queue, u.tenant_id
              from unnest(p_queues, p_tenant_ids) u(queue, tenant_id)) f
     order by 1
  loop
    perform pg_advisory_xact_lock(20, key);
  end loop;
end
$$;
