-- Definitions. The row that is fired stays narrow, because ten million of them are walked by the
-- due index and rewritten at every fire; what a job does is in its versions, written once.
create table foliot.lanes (
  id          integer generated always as identity primary key,
  queue       text    not null,
  region      text,
  requires    text[]  not null default '{}',
  target_type text    not null check (target_type in ('HTTP', 'HANDLER', 'COMMAND', 'DAG')),
  handler     text,
  unique nulls not distinct (queue, region, requires, target_type, handler)
);

create table foliot.queues (
  name              text primary key,
  paused_at         timestamptz,
  status_note       text,
  concurrency_limit integer check (concurrency_limit >= 0)
);

create table foliot.jobs (
  id                     uuid        primary key,
  tenant_id              uuid        not null,
  shard                  smallint    not null check (shard between 0 and 63),
  status                 text        not null check (status in ('ACTIVE', 'PAUSED', 'COMPLETED', 'DELETED')),
  version                integer     not null,
  schedule_version       integer     not null,
  next_instant           timestamptz,
  next_run_at            timestamptz,
  last_instant           timestamptz, -- everything up to here is settled; it only moves forward
  fired_count            bigint      not null default 0,
  queue                  text        not null,
  lane_id                integer     not null,
  priority               smallint    not null check (priority between 1 and 10),
  overlap_policy         text        not null
    check (overlap_policy in ('SKIP', 'ALLOW', 'QUEUE_ONE', 'QUEUE_ALL', 'CANCEL_PREVIOUS')),
  start_deadline_seconds float8,
  limit_keys             text[],     -- null: nothing limits how many run at once
  notify                 boolean     not null default false, -- somebody wants to hear of its ends
  hidden                 boolean     not null default false, -- a dag's schedule
  name                   text        not null,
  tags                   text[]      not null default '{}',
  status_note            text,
  created_at             timestamptz not null,
  updated_at             timestamptz not null,
  check ((next_instant is null) = (next_run_at is null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

create index jobs_due on foliot.jobs (shard, next_run_at)
  where status = 'ACTIVE' and next_run_at is not null;
create unique index jobs_name on foliot.jobs (tenant_id, name)
  where status in ('ACTIVE', 'PAUSED');

-- Every version with the time it was in force: what an execution keeps, what the ledger recounts.
create table foliot.job_versions (
  job_id           uuid        not null,
  tenant_id        uuid        not null,
  version          integer     not null,
  schedule_version integer     not null,
  status           text        not null,
  definition       jsonb       not null,
  payload          jsonb,
  changed_by       text        not null,
  note             text,
  valid_from       timestamptz not null,
  primary key (job_id, version)
);

-- The instants that did not run: the ledger's other half. Consecutive ones with one reason are one row.
create table foliot.skips (
  job_id           uuid        not null,
  tenant_id        uuid        not null,
  schedule_version integer     not null,
  from_instant     timestamptz not null,
  to_instant       timestamptz not null,
  count            bigint      not null check (count > 0),
  reason           text        not null
    check (reason in ('OVERLAP', 'MISFIRE', 'CALENDAR', 'PAUSED', 'DST_GAP')),
  recorded_at      timestamptz not null,
  primary key (job_id, from_instant)
);

create table foliot.shard_leases (
  shard      smallint    primary key check (shard between 0 and 63),
  owner      uuid,
  epoch      bigint      not null default 0,
  expires_at timestamptz
) with (fillfactor = 50);
insert into foliot.shard_leases (shard) select pg_catalog.generate_series(0, 63);

create table foliot.dags (
  id             uuid        primary key,
  tenant_id      uuid        not null,
  job_id         uuid        not null unique, -- its schedule, fired like any other
  name           text        not null,
  version        integer     not null,
  status         text        not null check (status in ('ACTIVE', 'PAUSED', 'COMPLETED', 'DELETED')),
  failure_policy text        not null check (failure_policy in ('FAIL_FAST', 'CONTINUE', 'RETRY')),
  created_at     timestamptz not null,
  updated_at     timestamptz not null
);
create unique index dags_name on foliot.dags (tenant_id, name)
  where status in ('ACTIVE', 'PAUSED');

create table foliot.dag_versions (
  dag_id     uuid        not null,
  tenant_id  uuid        not null,
  version    integer     not null,
  definition jsonb       not null,
  changed_by text        not null,
  valid_from timestamptz not null,
  primary key (dag_id, version)
);
