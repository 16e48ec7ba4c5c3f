-- purpose: a page of the tenants, what their quotas say and what their limits are
-- caller: sql tenants/list_quotas
-- transition: none
-- fence: none
-- index: tenants_pkey, limits_pkey
create or replace function foliot.list_quotas(p_after uuid, p_batch integer)
returns table (id uuid, quotas jsonb, max_running integer, rate_count integer, rate_seconds float8)
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return query
  select t.id, t.quotas, l.max_running, l.rate_count, l.rate_seconds
    from (select t.id, t.quotas from foliot.tenants t
           where t.id > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
           order by t.id limit p_batch) t
    left join lateral (select l.max_running, l.rate_count, l.rate_seconds
                         from foliot.limits l where l.key = 'tenant:' || t.id offset 0) l on true
   order by t.id;
end
$$;
