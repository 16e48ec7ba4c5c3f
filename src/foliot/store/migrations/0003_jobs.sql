-- Definitions. The row that is fired stays narrow, because ten million of them are walked by the
-- due index and rewritten at every fire; what a job does is in its versions, written once.
create table foliot.lanes (
  id          integer generated always as identity primary key,
  queue       text    not null collate "C",
  region      text,
  requires    text[]  not null default '{}',
  target_type text    not null check (target_type in ('HTTP', 'HANDLER', 'COMMAND', 'DAG')),
  handler     text,
  unique nulls not distinct (queue, region, requires, target_type, handler)
);

create table foliot.queues (
  name              text collate "C" primary key,
  paused_at         timestamptz,
  status_note       text,
  concurrency_limit integer check (concurrency_limit >= 0)
);

-- Columns of a fixed width come first: a row is read and written faster when their places are known.
create table foliot.jobs (
  id                     uuid        primary key,
  tenant_id              uuid        not null,
  created_at             timestamptz not null,
  updated_at             timestamptz not null,
  fired_count            bigint      not null default 0,
  next_instant           timestamptz,
  next_run_at            timestamptz,
  version                integer     not null,
  schedule_version       integer     not null,
  lane_id                integer     not null,
  shard                  smallint    not null check (shard between 0 and 63),
  priority               smallint    not null check (priority between 1 and 10),
  notify                 boolean     not null default false, -- somebody wants to hear of its ends
  hidden                 boolean     not null default false, -- a dag's schedule
  status                 text        not null check (status in ('ACTIVE', 'PAUSED', 'COMPLETED', 'DELETED')),
  queue                  text        not null collate "C",
  overlap_policy         text        not null
    check (overlap_policy in ('SKIP', 'ALLOW', 'QUEUE_ONE', 'QUEUE_ALL', 'CANCEL_PREVIOUS')),
  name                   text        not null,
  last_instant           timestamptz, -- everything up to here is settled; it only moves forward
  tags                   text[],      -- null: none
  limit_keys             text[],      -- null: nothing limits how many run at once
  start_deadline_seconds float8,
  -- What it fired last, if nothing else of it was under way then: so long as this is set, whether the job
  -- is busy is told by one row. Among all its rows, a pinned snapshot keeps every one it ever fired.
  sole_id                uuid,
  status_note            text,
  check ((next_instant is null) = (next_run_at is null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

create index jobs_due on foliot.jobs (shard, next_run_at)
  where status = 'ACTIVE' and next_run_at is not null;

-- Whose a name is: of one ACTIVE or PAUSED job at a time, or of the last that had it. In a table of its
-- own, because every fire rewrites all index entries of the row it changes.
create table foliot.job_names (
  tenant_id uuid not null,
  name      text not null,
  job_id    uuid not null,
  primary key (tenant_id, name)
);

-- Every version with the time it was in force: what an execution keeps, what the ledger recounts.
-- The last three say where it found the job: how far its instants were settled, how many had
-- fired, and by which version of its calendar it was planned.
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
  last_instant     timestamptz,
  fired_count      bigint      not null default 0,
  calendar_version integer,
  primary key (job_id, version)
);

-- A tenant's jobs in the order of their making, for lists: by their first versions, because an index of
-- the jobs themselves would be written at every fire.
create index job_versions_first on foliot.job_versions (tenant_id, valid_from, job_id) where version = 1;

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

-- Which jobs fire after which others, as the schedules in force say, and the newest end of each parent
-- that its child has not fired for. An end of any job looks here for those whom it concerns, so the table
-- is empty where nobody uses it.
create table foliot.job_parents (
  parent_id     uuid        not null,
  child_id      uuid        not null,
  tenant_id     uuid        not null,
  needs_success boolean     not null, -- other ends do not count
  last_number   bigint      not null default 0, -- completions up to there are told
  execution_id  uuid,       -- null: none since the child's last fire
  finished_at   timestamptz,
  status        text,
  primary key (parent_id, child_id)
) with (fillfactor = 70);
create index job_parents_child on foliot.job_parents (child_id);

create table foliot.shard_leases (
  shard      smallint    primary key check (shard between 0 and 63),
  owner      uuid,
  epoch      bigint      not null default 0,
  expires_at timestamptz
) with (fillfactor = 50);
insert into foliot.shard_leases (shard) select pg_catalog.generate_series(0, 63);

-- Who shares the shards: a row that its node renews. One that is missing or silent for longer than a lease
-- is a dead node's.
create table foliot.schedulers (
  id           uuid        primary key, -- fresh at every start
  host         text        not null,
  version      text        not null,
  started_at   timestamptz not null,
  last_seen_at timestamptz not null
) with (fillfactor = 50);

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
