-- purpose: let one transaction at a time change which of a tenant's jobs follow which; ends with it
-- caller: sql dependents/lock_tenant
-- transition: none
-- fence: none
-- index: job_parents_pkey
--
-- Two edits that each see the graph before the other's would close a cycle between them. Taken before the
-- lock of any job. With a parent it is taken only if that parent has children.
create or replace function foliot.lock_dependents(p_tenant_id uuid, p_parent_id uuid)
returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  if p_parent_id is null
     or exists (select from foliot.job_parents p where p.parent_id = p_parent_id) then
    perform pg_advisory_xact_lock(23, hashtext(p_tenant_id::text));
  end if;
end
$$;
