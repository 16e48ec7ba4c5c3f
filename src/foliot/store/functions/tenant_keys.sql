-- purpose: the limit keys of those of some tenants that have a limit; null if none has
-- caller: function enqueue, function fire, function follow
-- transition: none
-- fence: none
-- index: limits_pkey
create or replace function foliot.tenant_keys(p_tenant_ids uuid[])
returns text[]
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (select array_agg(distinct k.key)
            from (select 'tenant:' || t.id as key from unnest(p_tenant_ids) t(id)) k
           where (select true from foliot.limits l where l.key = k.key));
end
$$;
