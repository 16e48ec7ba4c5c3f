-- A log of every change of executions and shard leases, of every start under a rate and of every limit that
-- ever was, written by triggers in the transaction that makes the change. Not of the product: installed by
-- those who watch it.
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
