-- What is over: one row per attempt, in the partition of the day it finished. A day that is over never
-- changes, and forgetting one is dropping a table. The last attempt of an execution is its outcome.
create table foliot.attempts (
  id               uuid        not null,
  fence            integer     not null,
  attempt_number   integer     not null,
  tenant_id        uuid        not null,
  job_id           uuid        not null,
  job_version      integer     not null,
  job_name         text        not null, -- as of the fire, like the tags
  tags             text[],
  status           text        not null,
  final            boolean     not null, -- the execution ended with it
  trigger          text        not null,
  queue            text        not null,
  priority         smallint    not null,
  scheduled_time   timestamptz not null,
  available_at     timestamptz not null,
  queued_at        timestamptz,
  claimed_at       timestamptz,
  started_at       timestamptz,
  finished_at      timestamptz not null,
  worker_id        uuid,
  labels           jsonb,
  payload          jsonb,
  result           jsonb,
  result_truncated boolean     not null default false,
  error            jsonb,
  response         jsonb,
  idempotency_key  text,
  retry_of         uuid,
  dag_run_id       uuid,
  trace_id         text,
  cancel_requested_at timestamptz,
  limit_key        text         -- the concurrency key it was under
) partition by range (finished_at);

-- Where a finish lands whose day nobody made: it must never fail for that.
create table foliot.attempts_default partition of foliot.attempts default;

create unique index attempts_identity on foliot.attempts (id, fence, finished_at);
create index attempts_job on foliot.attempts (job_id, finished_at desc);
create index attempts_failures on foliot.attempts (tenant_id, finished_at desc)
  where status in ('FAILED', 'TIMED_OUT');

-- What attempts said while they ran, in the partition of the day they said it. A line is known by its
-- number within the attempt, so that writing a batch again adds nothing.
create table foliot.execution_logs (
  execution_id   uuid        not null,
  tenant_id      uuid        not null,
  at             timestamptz not null,
  fence          integer     not null,
  attempt_number integer     not null,
  seq            integer     not null,
  level          text        not null,
  source         text        not null,
  message        text        not null
) partition by range (at);
create table foliot.execution_logs_default partition of foliot.execution_logs default;
create unique index execution_logs_identity on foliot.execution_logs (execution_id, fence, seq, at);

-- What ended without success, with all that it takes to run it again. One is open until it is replayed or
-- discarded, and closed from then on.
create table foliot.dead_letters (
  id              uuid        primary key, -- the execution's own id: there is one at the most
  tenant_id       uuid        not null,
  job_id          uuid        not null,
  job_version     integer     not null,
  job_name        text        not null,
  reason          text        not null
    check (reason in ('EXHAUSTED', 'NON_RETRYABLE', 'POISON', 'EXPIRED')),
  fingerprint     text        not null,
  scheduled_time  timestamptz not null,
  failed_at       timestamptz not null,
  payload         jsonb,
  payload_is_jobs boolean     not null, -- and none that came with a request
  priority        smallint    not null,
  labels          jsonb,
  limit_key       text,        -- the concurrency key it was under
  idempotency_key text,        -- null: the id itself
  total_attempts  integer     not null,
  error           jsonb,
  replay_at       timestamptz, -- when it is replayed without anybody asking
  replayed_as     uuid,
  replayed_at     timestamptz,
  discarded_at    timestamptz,
  discard_reason  text,
  check ((replayed_at is null) = (replayed_as is null)),
  check ((discarded_at is null) = (discard_reason is null)),
  check (replayed_at is null or discarded_at is null)
);
create index dead_letters_open on foliot.dead_letters (tenant_id, failed_at, id)
  where replayed_at is null and discarded_at is null;
create index dead_letters_job on foliot.dead_letters (tenant_id, job_id, failed_at, id)
  where replayed_at is null and discarded_at is null;
create index dead_letters_group on foliot.dead_letters (tenant_id, fingerprint, failed_at, id)
  where replayed_at is null and discarded_at is null;
create index dead_letters_closed on foliot.dead_letters (tenant_id, failed_at, id)
  where replayed_at is not null or discarded_at is not null;
-- Of all tenants, and so in words of its own: a list of one tenant's must not be read by it.
create index dead_letters_oldest on foliot.dead_letters (failed_at)
  where coalesce(replayed_at, discarded_at) is null;
create index dead_letters_due on foliot.dead_letters (replay_at)
  where replay_at is not null and replayed_at is null and discarded_at is null;

-- Who must be told of an end. Written by the finish itself, carried out later: whoever takes one has it until
-- `leased_until`, and is known by the number of that claim. `next_attempt_at` is then the same time, so that
-- one index has all that is due and all that was dropped.
create table foliot.deliveries (
  id              uuid        not null, -- of the execution
  fence           integer     not null,
  tenant_id       uuid        not null,
  job_id          uuid        not null,
  status          text        not null,
  created_at      timestamptz not null,
  next_attempt_at timestamptz not null,
  attempt_number  integer     not null default 0, -- since it was last asked for
  claim_number    integer     not null default 0,
  leased_until    timestamptz,
  redelivered_at  timestamptz, -- when it was asked for again
  delivered_at    timestamptz,
  given_up_at     timestamptz,
  attempts        jsonb       not null default '[]', -- the last ones, the newest first
  primary key (id, fence)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index deliveries_due on foliot.deliveries (next_attempt_at)
  where delivered_at is null and given_up_at is null;
create index deliveries_age on foliot.deliveries (created_at);

-- Ends that a child has to be told of: written by the end itself, gone once they are told. Numbers rise:
-- of two ends of one parent the one with the higher number is the newer.
create table foliot.completions (
  number       bigint      generated always as identity primary key,
  child_id     uuid        not null,
  parent_id    uuid        not null,
  execution_id uuid        not null,
  tenant_id    uuid        not null,
  finished_at  timestamptz not null,
  status       text        not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000);
create index completions_age on foliot.completions (finished_at);
create index completions_pair on foliot.completions (child_id, parent_id, number desc);
