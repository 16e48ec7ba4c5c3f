-- Whose row it is, and the role behind which a tenant sees only its own.
--
-- The engine (schedulers, workers, migrations) works as the owner of the tables, for all tenants. What
-- is done on behalf of one tenant runs as `foliot_tenant`, which owns nothing and passes through
-- row-level security: `set local role foliot_tenant` and the tenant's id in `foliot.tenant_id`, both
-- gone with the transaction. Without an id it sees nothing at all.
do $$
declare
  -- From 16 on one can be a member of a role, as its creator is, without the right to become it.
  needed text := case when pg_catalog.current_setting('server_version_num')::integer < 160000
                      then 'member' else 'set' end;
begin
  if not exists (select from pg_catalog.pg_roles where rolname = 'foliot_tenant') then
    begin
      create role foliot_tenant nologin;
    exception when duplicate_object or unique_violation then
      null; -- another database's migration was faster
    end;
  end if;
  if not pg_catalog.pg_has_role(current_user, 'foliot_tenant', needed) then
    execute pg_catalog.format('grant foliot_tenant to %I', current_user);
  end if;
exception
  when insufficient_privilege then
    raise exception 'this role may not create or use the role foliot_tenant'
      using hint = pg_catalog.format(
        'as an administrator: create role foliot_tenant nologin; grant foliot_tenant to %I',
        current_user);
end
$$;

grant usage on schema foliot to foliot_tenant;

create function foliot.current_tenant() returns uuid
  language sql stable parallel safe
  return nullif(pg_catalog.current_setting('foliot.tenant_id', true), '')::uuid;

create table foliot.tenants (
  id         uuid        primary key,
  name       text        not null unique,
  tier       text        not null check (tier in ('free', 'pro', 'enterprise', 'unlimited')),
  -- What a flow of this tenant weighs against those of others: the tier's, unless agreed otherwise.
  weight     float8      not null check (weight > 0),
  quotas     jsonb       not null default '{}',
  -- What the operator opens to callbacks of this tenant, besides what is open to all of them.
  callback_allow text[] not null default '{}',
  created_at timestamptz not null,
  deleted_at timestamptz
);

create table foliot.api_keys (
  id           uuid        primary key,
  tenant_id    uuid        not null,
  name         text        not null,
  prefix       text        not null,
  hash         bytea       not null unique,
  scopes       text[]      not null,
  created_at   timestamptz not null,
  expires_at   timestamptz,
  last_used_at timestamptz,
  revoked_at   timestamptz
);
create index api_keys_tenant on foliot.api_keys (tenant_id);

-- Sealed under a key that the database never sees; tenant, name and version are part of the seal.
create table foliot.secrets (
  tenant_id  uuid        not null,
  name       text        not null,
  version    integer     not null,
  key_id     text        not null,
  nonce      bytea       not null,
  ciphertext bytea       not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, name)
);
alter table foliot.secrets alter column ciphertext set storage external; -- it does not shrink

-- What a tenant's callbacks are signed with, sealed like secrets; tenant and number are part of the seal. The
-- newest has no end; one that was replaced signs beside it until its own.
create table foliot.signing_keys (
  tenant_id  uuid        not null,
  number     integer     not null,
  key_id     text        not null,
  nonce      bytea       not null,
  ciphertext bytea       not null,
  created_at timestamptz not null,
  ends_at    timestamptz,
  primary key (tenant_id, number)
);

create table foliot.calendars (
  tenant_id  uuid        not null,
  name       text        not null,
  version    integer     not null,
  definition jsonb       not null,
  updated_at timestamptz not null,
  primary key (tenant_id, name)
);

-- What a calendar said under each of its versions: jobs were planned by it, and the ledger recounts them.
create table foliot.calendar_versions (
  tenant_id  uuid        not null,
  name       text        not null,
  version    integer     not null,
  definition jsonb       not null,
  valid_from timestamptz not null,
  primary key (tenant_id, name, version)
);

create table foliot.audit_log (
  id         bigint      generated always as identity primary key,
  tenant_id  uuid        not null,
  at         timestamptz not null,
  actor      text        not null,
  action     text        not null,
  subject    text        not null,
  subject_id text        not null,
  change     jsonb       not null
);
create index audit_log_tenant on foliot.audit_log (tenant_id, at desc);

-- What an earlier request with the same key was answered; kept for a day.
create table foliot.idempotency_keys (
  tenant_id    uuid        not null,
  route        text        not null,
  key          text        not null,
  request_hash bytea       not null,
  answer       jsonb,
  created_at   timestamptz not null,
  abandoned    boolean     not null default false, -- whoever was at work on it has given up
  primary key (tenant_id, route, key)
) with (autovacuum_vacuum_scale_factor = 0.05);
alter table foliot.idempotency_keys alter column answer set storage external; -- ids do not shrink
create index idempotency_keys_age on foliot.idempotency_keys (created_at);

-- The tenant of those who have no tenants: everything on a laptop belongs to it.
insert into foliot.tenants (id, name, tier, weight, created_at)
values ('00000000-0000-8000-8000-000000000001', 'default', 'unlimited', 10, pg_catalog.statement_timestamp());
