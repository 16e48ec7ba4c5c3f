-- purpose: a page of the tenants, what their quotas say and what their limits are
-- caller: store.tenant_limits
-- transition: none
-- fence: none
-- index: tenants_pkey, limits_pkey
select id, quotas, max_running, rate_count, rate_seconds
  from foliot.list_quotas($1::uuid, $2::integer);
