-- What a transaction on behalf of a tenant may do, and with whose rows. Every table with a tenant_id
-- has row security and a policy for both sight and change; the owner, who is the engine, is not held.
--
-- History is added to, never rewritten: no update and no delete on what is over. What belongs to the
-- operator alone (leases, clocks) is granted to nobody, and neither are lanes: they name the handlers
-- of all tenants. Partitions of the history have no grants: they are read through their parent.
grant select on foliot.tenants, foliot.queues, foliot.execution_logs, foliot.job_parents to foliot_tenant;
grant select, insert, update, delete
  on foliot.calendars, foliot.executions, foliot.job_names
  to foliot_tenant;
grant select, insert, update on foliot.idempotency_keys, foliot.jobs, foliot.dags to foliot_tenant;
grant select, insert
  on foliot.audit_log, foliot.calendar_versions, foliot.job_versions, foliot.dag_versions, foliot.skips,
     foliot.attempts, foliot.deliveries, foliot.completions
  to foliot_tenant;

-- A secret can be written and removed, not read: only a worker decrypts it, and it is the engine's.
grant select (tenant_id, name, version, created_at, updated_at), insert, delete,
      update (version, key_id, nonce, ciphertext, updated_at)
  on foliot.secrets to foliot_tenant;

-- Nor can a signing key: it is shown once, by who made it.
grant select (tenant_id, number, created_at, ends_at), insert, update (ends_at), delete
  on foliot.signing_keys to foliot_tenant;

-- A dead letter can be discarded. To replay one is more than a change of its row, and the engine's.
grant select, update (discarded_at, discard_reason) on foliot.dead_letters to foliot_tenant;

-- A delivery can be asked for again.
grant update (next_attempt_at, attempt_number, redelivered_at, delivered_at, given_up_at)
  on foliot.deliveries to foliot_tenant;

-- A key is looked up by its hash before anyone knows the tenant, by the engine. Revoked keys stay.
grant select (id, tenant_id, name, prefix, scopes, created_at, expires_at, last_used_at, revoked_at),
      insert, update (name, scopes, expires_at, revoked_at)
  on foliot.api_keys to foliot_tenant;

-- Not `started`: a worker that serves everyone runs the executions of others.
grant select (id, tenant_id, name, host, version, status, queues, labels, region, handlers, capacity,
              registered_at, last_heartbeat_at),
      insert, update
  on foliot.workers to foliot_tenant;

alter table foliot.tenants enable row level security;
create policy own on foliot.tenants to foliot_tenant
  using (id = (select foliot.current_tenant()))
  with check (id = (select foliot.current_tenant()));

do $$
declare
  owned regclass;
begin
  for owned in
    select c.oid
      from pg_catalog.pg_class c
      join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
     where c.relnamespace = 'foliot'::regnamespace and c.relkind in ('r', 'p')
     order by c.relname
  loop
    execute pg_catalog.format('alter table %s enable row level security', owned);
    -- A partition has row security and no policy: around its parent nothing can be seen.
    if not (select c.relispartition from pg_catalog.pg_class c where c.oid = owned) then
      execute pg_catalog.format(
        'create policy own on %s to foliot_tenant
           using (tenant_id = (select foliot.current_tenant()))
           with check (tenant_id = (select foliot.current_tenant()))', owned);
    end if;
  end loop;
end
$$;

-- A worker without a tenant serves all of them, so all of them may see that it is there. The handlers
-- it names are the operator's. The one without places, which stands for HTTP targets, is nobody to see.
create policy shared on foliot.workers for select to foliot_tenant
  using (tenant_id is null and capacity > 0 and (select foliot.current_tenant()) is not null);
