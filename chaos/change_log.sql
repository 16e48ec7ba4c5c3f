-- A log of every change of executions, shard leases and queues, of every start under a rate, of every limit
-- that ever was and of what attempts say of themselves, written by triggers in the transaction that makes the
-- change. Not of the product: installed by those who watch it.
--
-- Numbers of changes of one row are in the order of the changes: a number is drawn while the row is locked by
-- its transaction. The functions run as their owner, whoever writes: a tenant's role writes here too and sees
-- nothing of it. When a transaction committed is asked of the server (track_commit_timestamp).
create schema chaos;

create type chaos.execution as (
  id                  uuid,
  job_id              uuid,
  job_version         integer,
  status              text,
  hold                text,
  trigger             text,
  fence               integer,
  attempt_number      integer,
  crash_count         integer,
  run_alone           boolean,
  rank                float8,
  worker_id           uuid,
  queue               text,
  limit_keys          text[],
  scheduled_time      timestamptz,
  created_at          timestamptz,
  available_at        timestamptz,
  queued_at           timestamptz,
  claimed_at          timestamptz,
  cancel_requested_at timestamptz,
  start_by            timestamptz
);

create type chaos.lease as (
  shard      smallint,
  owner      uuid,
  epoch      bigint,
  expires_at timestamptz
);

create type chaos.queue as (
  name              text,
  paused_at         timestamptz,
  concurrency_limit integer
);

create table chaos.execution_changes (
  number         bigint generated always as identity primary key,
  transaction_id xid8   not null default pg_catalog.pg_current_xact_id(),
  old            chaos.execution,
  new            chaos.execution
);

create table chaos.lease_changes (
  number         bigint generated always as identity primary key,
  transaction_id xid8   not null default pg_catalog.pg_current_xact_id(),
  old            chaos.lease,
  new            chaos.lease
);

create table chaos.queue_changes (
  number         bigint generated always as identity primary key,
  transaction_id xid8   not null default pg_catalog.pg_current_xact_id(),
  old            chaos.queue,
  new            chaos.queue
);

-- Progress and lines of attempts: the fence that they were written under, and the fence of whoever said them,
-- which handlers begin with ('fence 3: ...').
create table chaos.reports (
  number         bigint  generated always as identity primary key,
  transaction_id xid8    not null default pg_catalog.pg_current_xact_id(),
  kind           text    not null,
  execution_id   uuid    not null,
  fence          integer not null,
  said           integer not null
);

-- The product forgets both when it no longer needs them.
create table chaos.rate_starts (
  number  bigint      generated always as identity primary key,
  key     text        not null,
  at      timestamptz not null,
  started integer     not null
);

create table chaos.limits (
  number       bigint generated always as identity primary key,
  key          text   not null,
  max_running  integer,
  rate_count   integer,
  rate_seconds float8
);

create function chaos.note_executions() returns trigger
language plpgsql security definer
set search_path = pg_catalog
as $$
begin
  if tg_op = 'INSERT' then
    insert into chaos.execution_changes (new)
    select jsonb_populate_record(null::chaos.execution, to_jsonb(n)) from new_rows n;
  elsif tg_op = 'DELETE' then
    insert into chaos.execution_changes (old)
    select jsonb_populate_record(null::chaos.execution, to_jsonb(o)) from old_rows o;
  else
    insert into chaos.execution_changes (old, new)
    select c.old, c.new
      from (select jsonb_populate_record(null::chaos.execution, to_jsonb(o)) as old,
                   jsonb_populate_record(null::chaos.execution, to_jsonb(n)) as new
              from old_rows o join new_rows n on n.id = o.id) c
     where c.old is distinct from c.new;
    insert into chaos.reports (kind, execution_id, fence, said)
    select 'progress', n.id, n.fence,
           coalesce(substring(n.progress ->> 'message' from '^fence (\d+)')::integer, n.fence)
      from old_rows o join new_rows n on n.id = o.id
     where n.progress is not null and n.progress is distinct from o.progress;
  end if;
  return null;
end
$$;

create function chaos.note_leases() returns trigger
language plpgsql security definer
set search_path = pg_catalog
as $$
begin
  insert into chaos.lease_changes (old, new)
  select jsonb_populate_record(null::chaos.lease, to_jsonb(o)),
         jsonb_populate_record(null::chaos.lease, to_jsonb(n))
    from old_rows o join new_rows n on n.shard = o.shard;
  return null;
end
$$;

create function chaos.note_queues() returns trigger
language plpgsql security definer
set search_path = pg_catalog
as $$
begin
  if tg_op = 'INSERT' then
    insert into chaos.queue_changes (new)
    select jsonb_populate_record(null::chaos.queue, to_jsonb(n)) from new_rows n;
  else
    insert into chaos.queue_changes (old, new)
    select jsonb_populate_record(null::chaos.queue, to_jsonb(o)),
           jsonb_populate_record(null::chaos.queue, to_jsonb(n))
      from old_rows o join new_rows n on n.name = o.name;
  end if;
  return null;
end
$$;

create function chaos.note_lines() returns trigger
language plpgsql security definer
set search_path = pg_catalog
as $$
begin
  insert into chaos.reports (kind, execution_id, fence, said)
  select 'line', n.execution_id, n.fence,
         coalesce(substring(n.message from '^fence (\d+)')::integer, n.fence)
    from new_rows n;
  return null;
end
$$;

create function chaos.note_starts() returns trigger
language plpgsql security definer
set search_path = pg_catalog
as $$
begin
  insert into chaos.rate_starts (key, at, started) select n.key, n.at, n.started from new_rows n;
  return null;
end
$$;

create function chaos.note_limits() returns trigger
language plpgsql security definer
set search_path = pg_catalog
as $$
begin
  insert into chaos.limits (key, max_running, rate_count, rate_seconds)
  select n.key, n.max_running, n.rate_count, n.rate_seconds from new_rows n;
  return null;
end
$$;

create trigger chaos_insert after insert on foliot.executions
  referencing new table as new_rows
  for each statement execute function chaos.note_executions();
create trigger chaos_update after update on foliot.executions
  referencing old table as old_rows new table as new_rows
  for each statement execute function chaos.note_executions();
create trigger chaos_delete after delete on foliot.executions
  referencing old table as old_rows
  for each statement execute function chaos.note_executions();
create trigger chaos_update after update on foliot.shard_leases
  referencing old table as old_rows new table as new_rows
  for each statement execute function chaos.note_leases();
create trigger chaos_insert after insert on foliot.rate_starts
  referencing new table as new_rows
  for each statement execute function chaos.note_starts();
create trigger chaos_insert after insert on foliot.limits
  referencing new table as new_rows
  for each statement execute function chaos.note_limits();
create trigger chaos_update after update on foliot.limits
  referencing new table as new_rows
  for each statement execute function chaos.note_limits();
create trigger chaos_insert after insert on foliot.queues
  referencing new table as new_rows
  for each statement execute function chaos.note_queues();
create trigger chaos_update after update on foliot.queues
  referencing old table as old_rows new table as new_rows
  for each statement execute function chaos.note_queues();
create trigger chaos_insert after insert on foliot.execution_logs
  referencing new table as new_rows
  for each statement execute function chaos.note_lines();
