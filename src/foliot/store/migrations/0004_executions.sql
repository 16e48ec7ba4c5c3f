-- The live table: what is not finished, and so the queue itself. Finishing deletes the row, so it stays
-- small however long the history is.
--
-- `rank` is null until the row may run: future, parked and held rows are in no index that a claim
-- walks over. 500,000 future rows in the claim index cost 313 ms a claim; with a null rank, nothing.
create table foliot.executions (
  id                  uuid        primary key,
  tenant_id           uuid        not null,
  job_id              uuid        not null,
  scheduled_time      timestamptz not null,
  available_at        timestamptz not null,
  created_at          timestamptz not null,
  job_version         integer     not null,
  lane_id             integer     not null,
  attempt_number      integer     not null default 0,
  fence               integer     not null default 0,
  crash_count         integer     not null default 0,
  priority            smallint    not null,
  run_alone           boolean     not null default false, -- its worker died: next time in a child of its own
  notify              boolean     not null default false,
  queue_slot          boolean     not null default false, -- claimed while its queue had a limit
  rank                float8,
  queued_at           timestamptz,
  status              text        not null
    check (status in ('PENDING', 'WAITING', 'QUEUED', 'RUNNING', 'RETRYING')),
  trigger             text        not null,
  queue               text        not null collate "C",
  job_name            text        not null,
  worker_id           uuid,
  claimed_at          timestamptz,
  cancel_requested_at timestamptz,
  start_by            timestamptz, -- not claimed by then, it expires
  tags                text[],      -- null: none
  limit_keys          text[],
  hold                text,        -- what a WAITING row waits for: OVERLAP, LIMIT, EVENT, PARENT, BREAKER
  hold_detail         text,        -- of a BREAKER, in words; under another hold, what is left of one
  unique_key          text,
  labels              jsonb,
  payload             jsonb,       -- null: the payload of the job's version
  idempotency_key     text,        -- null: the id itself
  retry_of            uuid,
  dag_run_id          uuid,
  trace_id            text,
  progress            jsonb,
  check (cardinality(limit_keys) <= 3), -- tenant, job, key: the widest first
  check ((worker_id is not null) = (status = 'RUNNING')),
  check (rank is null or status in ('QUEUED', 'RUNNING'))
) with (
  fillfactor = 60,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_vacuum_cost_delay = 0
);

create index executions_claim on foliot.executions (lane_id, rank)
  where worker_id is null and rank is not null;
create index executions_flow on foliot.executions (queue, tenant_id, priority, rank)
  where worker_id is null and rank is not null;
-- The last part tells what is under way from what its job's overlap policy holds, however many those are.
create index executions_job on foliot.executions (job_id, trigger, (hold is distinct from 'OVERLAP'));
create index executions_worker on foliot.executions (worker_id, claimed_at)
  where worker_id is not null;
create index executions_start_by on foliot.executions (start_by)
  where start_by is not null and worker_id is null;
create unique index executions_unique_key on foliot.executions (job_id, unique_key)
  where unique_key is not null;

-- Due rows that are not ranked yet. An open breaker holds a row until its time comes, like a backoff.
create index executions_release on foliot.executions (available_at)
  where rank is null and (status in ('PENDING', 'QUEUED', 'RETRYING') or hold = 'BREAKER');

-- Held until the job's earlier execution is over; the jobs are walked in the order of their ids.
create index executions_overlap on foliot.executions (job_id, scheduled_time, id)
  where status = 'WAITING' and hold = 'OVERLAP';

-- Rows held by a limit, together with those of their lane under the very same keys, in the order of
-- admission. In the collation "C" all lists that begin alike are neighbours, and one step passes over them.
create index executions_held on foliot.executions
  (limit_keys collate "C", lane_id, priority, scheduled_time, id)
  where status = 'WAITING' and hold = 'LIMIT';

-- Holders of a limit key: rows that are claimable or run. An index for each place in the list, because
-- only a btree forgets dead entries when it walks over them; one that also had the waiting rows would
-- count them all each time.
create index executions_slot_1 on foliot.executions ((limit_keys[1]))
  where rank is not null and limit_keys[1] is not null;
create index executions_slot_2 on foliot.executions ((limit_keys[2]))
  where rank is not null and limit_keys[2] is not null;
create index executions_slot_3 on foliot.executions ((limit_keys[3]))
  where rank is not null and limit_keys[3] is not null;

-- Who runs in a queue that has a limit: its claims come one after another, and each counts these.
create index executions_queue_slot on foliot.executions (queue)
  where queue_slot and status = 'RUNNING';

-- How many may run at once and how many may start within a time, by whose they are: `tenant:<id>`,
-- `job:<id>`, `key:<tenant>:<key>`. Nothing is counted here: who holds a slot is read from the rows, so no
-- crash can bend a count. A key without a row limits nothing.
create table foliot.limits (
  key          text    primary key,
  max_running  integer check (max_running >= 0),
  rate_count   integer check (rate_count >= 0),
  rate_seconds float8  check (rate_seconds > 0),
  check ((rate_count is null) = (rate_seconds is null)),
  check (max_running is not null or rate_count is not null)
);

-- When executions under a key with a rate were claimed, and how many at that moment. Rows are added by
-- the claim that they are about and removed when they are older than the rate looks back, never updated.
create table foliot.rate_starts (
  key     text        not null collate "C",
  at      timestamptz not null,
  started integer     not null check (started > 0)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index rate_starts_key on foliot.rate_starts (key, at);

-- Limits that were set while rows may have been waiting without their key. A walk over the rows gives it
-- to them; a second one, later than any statement can take, finds those that were being written.
create table foliot.limit_changes (
  key        text        primary key,
  changed_at timestamptz not null,
  walked_at  timestamptz
);

-- How far each lane of each queue has come: one row whenever a claim raises it, read from the top.
-- Rows are added and the old ones removed, never updated: under a pinned snapshot the versions of an
-- updated row pile up and every claim would walk them all.
create table foliot.queue_clocks (
  queue        text        not null collate "C",
  lane_id      integer     not null,
  virtual_time float8      not null,
  at           timestamptz not null,
  primary key (lane_id, virtual_time)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index queue_clocks_queue on foliot.queue_clocks (queue, virtual_time);
create index queue_clocks_at on foliot.queue_clocks (lane_id, at);

create table foliot.workers (
  id                uuid        primary key,
  tenant_id         uuid,       -- null: serves every tenant
  name              text        not null,
  host              text        not null,
  version           text        not null,
  status            text        not null check (status in ('ACTIVE', 'DRAINING', 'DEAD')),
  queues            text[]      not null,
  labels            text[]      not null default '{}',
  region            text,
  handlers          text[]      not null default '{}',
  target_types      text[]      not null default '{HANDLER}',
  capacity          integer     not null,
  started           uuid[]      not null default '{}', -- what it says it is running
  registered_at     timestamptz not null,
  last_heartbeat_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
create index workers_heartbeat on foliot.workers (last_heartbeat_at) where status <> 'DEAD';

-- In whose hands executions are that an HTTP target has taken over: no process, so it is never silent, and
-- it has no places, so it claims nothing. Its executions end when they are told to, or run out of time. A
-- time without end would do too, but not every server can subtract from one.
insert into foliot.workers (id, name, host, version, status, queues, target_types, capacity, registered_at,
                            last_heartbeat_at)
values ('00000000-0000-8000-8000-00000000ca11', 'remote', '', '', 'ACTIVE', '{}', '{}', 0, 'epoch',
        '9999-01-01 00:00:00+00');
