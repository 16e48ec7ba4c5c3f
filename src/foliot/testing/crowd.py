"""A crowd in the tables: 200,000 jobs, and as many executions, attempts, limits and old marks.

It comes in three steps, so that statistics and plans can be made in between: a handful of each
kind, then all that waits, then all that runs.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import md5
from typing import Final, cast
from uuid import UUID

import asyncpg

from foliot.store.partitions import provide_partitions
from foliot.store.session import PooledConnection, Session
from foliot.testing.rows import DEFAULT_TENANT, NOW

CROWD: Final = 200_000
HANDFUL: Final = 2
GUEST: Final = UUID("00000000-0000-8000-8000-000000000002")

# What becomes of the jobs from this number on; `idle` and `paused` ones have no execution. The
# first of each kind come with the handful. What runs is in the hands of a worker of that name.
FIRST: Final = {
    "idle": 1,
    "queued": 1_001,
    "queued last": 30_001,
    "guest": 39_001,
    "running": 40_001,
    "calm": 59_901,
    "lost": 60_001,
    "due": 70_001,
    "limited": 80_001,
    "overlap": 90_001,
    "late": 95_001,
    "paused": 99_001,
    "future": 100_001,
}


def id_of(what: str) -> UUID:
    """Of `job-7`, its `execution-7` or `worker-calm`: scattered, and known without asking."""
    return UUID(bytes=md5(what.encode(), usedforsecurity=False).digest())


def instant_of(number: int) -> datetime:
    """The next one of a job. They are a second apart; the first 1,000 are due."""
    return NOW + timedelta(seconds=number - 1000)


@dataclass(frozen=True, slots=True)
class Batch:
    """So many neighbours of one kind, and which group of them."""

    number: int
    size: int

    def of(self, kind: str) -> range:
        """The numbers of their jobs."""
        first = FIRST[kind] + self.number * self.size
        return range(first, first + self.size)


OURS: Final = """
insert into foliot.calendars (tenant_id, name, version, definition, updated_at)
select t.id, 'holidays', 1, '{}', t.created_at from foliot.tenants t;
insert into foliot.calendar_versions (tenant_id, name, version, definition, valid_from)
select c.tenant_id, c.name, c.version, c.definition, c.updated_at from foliot.calendars c;
insert into foliot.lanes (queue, target_type, handler) values ('default', 'HANDLER', 'work');
insert into foliot.limits (key, max_running, rate_count, rate_seconds)
values ('job:shared', 1000000, 1000000, 60)"""
STAFF: Final = """
insert into foliot.workers (id, tenant_id, name, host, version, status, queues, capacity,
                            registered_at, last_heartbeat_at)
select md5('worker-' || w.name)::uuid, w.tenant_id, w.name, 'test', '0', w.status, '{default}', 100,
       $1::timestamptz, $1 - w.silent * interval '1 s'
  from (values ('running', 'ACTIVE', null, 0), ('calm', 'ACTIVE', null, 0),
               ('lost', 'DEAD', null, 0), ('visitor', 'ACTIVE', $2::uuid, 0)
         union all
        select 'silent-' || n, 'ACTIVE', null, 70 - n from generate_series(0, 9) n)
       w(name, status, tenant_id, silent)"""

# The jobs of one step, and what all their rows are told.
PART: Final = """
create temporary table part (n integer, kind text, status text, job_id uuid, name text,
                             tenant_id uuid, execution_id uuid, worker_id uuid, now timestamptz)"""
CHOOSE: Final = """
insert into part
select n, k.kind,
       case when k.kind in ('queued', 'queued last', 'guest') then 'QUEUED'
            when k.kind in ('running', 'calm', 'lost') then 'RUNNING'
            when k.kind in ('limited', 'overlap') then 'WAITING'
            when k.kind in ('due', 'late', 'future') then 'PENDING' end,
       md5('job-' || n)::uuid, 'job-' || n,
       case k.kind when 'guest' then $3::uuid else $4::uuid end,
       md5('execution-' || n)::uuid, k.worker_id, $5
  from (select k.kind, k.first, lead(k.first, 1, $6::integer + 1) over (order by k.first) as after,
               w.id as worker_id
          from unnest($1::text[], $2::integer[]) k(kind, first)
          left join foliot.workers w on w.name = k.kind) k
 cross join generate_series(k.first, k.after - 1) n
 where (n < k.first + $7::integer) = $8::boolean"""

JOBS: Final = """
insert into foliot.jobs (id, tenant_id, shard, status, version, schedule_version, next_instant,
                         next_run_at, queue, lane_id, priority, overlap_policy, name, created_at,
                         updated_at)
select p.job_id, p.tenant_id, p.n % 64,
       case p.kind when 'paused' then 'PAUSED' else 'ACTIVE' end, 1, 1, d.at, d.at, 'default', 1, 5,
       (array['SKIP', 'ALLOW', 'QUEUE_ONE', 'QUEUE_ALL', 'CANCEL_PREVIOUS'])[1 + p.n % 5], p.name,
       p.now, p.now
  from part p
 cross join lateral (select p.now + (p.n - 1000) * interval '1 s') d(at)"""

NAMES: Final = """
insert into foliot.job_names (tenant_id, name, job_id)
select p.tenant_id, p.name, p.job_id from part p"""

VERSIONS: Final = """
insert into foliot.job_versions (job_id, tenant_id, version, schedule_version, status, definition,
                                 changed_by, valid_from, calendar_version)
select p.job_id, p.tenant_id, 1, 1, case p.kind when 'paused' then 'PAUSED' else 'ACTIVE' end,
       case p.n % 100 when 1 then '{"schedule": {"type": "MANUAL", "calendar": "holidays"}}'
                      else '{"schedule": {"type": "MANUAL"}}' end::jsonb, 'test', p.now,
       case p.n % 100 when 1 then 1 end
  from part p"""

SKIPS: Final = """
insert into foliot.skips (job_id, tenant_id, schedule_version, from_instant, to_instant, count,
                          reason, recorded_at)
select p.job_id, p.tenant_id, 1, p.now - interval '9 days', p.now - interval '8 days', 2, 'PAUSED',
       p.now
  from part p"""

EXECUTIONS: Final = """
insert into foliot.executions (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id,
                               priority, rank, scheduled_time, available_at, queued_at, fence,
                               attempt_number, worker_id, claimed_at, limit_keys, hold, start_by,
                               job_name, created_at)
select p.execution_id, p.tenant_id, p.job_id, 1, p.status, 'SCHEDULE', 'default', 1, 5,
       case when p.status in ('QUEUED', 'RUNNING') then p.n end,
       p.now + (p.n - 1000) * interval '1 s',
       p.now + case p.kind when 'future' then p.n else -60 end * interval '1 s', p.now,
       (p.status = 'RUNNING')::integer, (p.status = 'RUNNING')::integer, p.worker_id,
       case p.status when 'RUNNING' then p.now end,
       case p.kind when 'limited' then array['job:shared', 'key:' || p.n]
                   when 'calm' then array['job:shared'] end,
       case p.kind when 'limited' then 'LIMIT' when 'overlap' then 'OVERLAP' end,
       case p.kind when 'late' then p.now - interval '1 s' end, p.name, p.now
  from part p
 where (p.status = 'RUNNING') = $1::boolean"""

# Three weeks of it.
HISTORY: Final = """
insert into foliot.attempts
select a.* from part p
  join foliot.executions e on e.id = p.execution_id
 cross join lateral foliot.as_attempt(
         e, 'SUCCEEDED', true, p.now - p.n * interval '9 s', null, null, false, null, null) a"""

# Marks far below the ranks of the crowd and long ago, and a tenth of all numbers in what is small.
AROUND: Final = """
insert into foliot.queue_clocks (queue, lane_id, virtual_time, at)
select 'default', 1, p.n / 1000.0, p.now - interval '3 days' + p.n * interval '1 s' from part p;
insert into foliot.limits (key, max_running) select 'key:' || p.n, 1 from part p;
insert into foliot.rate_starts (key, at, started)
select k.key, p.now - p.n * interval '1 s', 1
  from part p cross join lateral (values ('job:' || p.n), ('job:shared')) k(key);
insert into foliot.execution_logs (execution_id, tenant_id, at, fence, attempt_number, seq, level,
                                   source, message)
select p.execution_id, p.tenant_id, p.now - p.n * interval '9 s', 1, 1, 1, 'INFO', 'test', 'a line'
  from part p;
insert into foliot.secrets (tenant_id, name, version, key_id, nonce, ciphertext, created_at,
                            updated_at)
select p.tenant_id, 'S' || p.n, 1, 'k1', '', '', p.now, p.now from part p;
insert into foliot.signing_keys (tenant_id, number, key_id, nonce, ciphertext, created_at)
select p.job_id, 1, 'k1', '', '', p.now from part p;
insert into foliot.deliveries (id, fence, tenant_id, job_id, status, created_at, next_attempt_at,
                               delivered_at)
select p.execution_id, 1, p.tenant_id, p.job_id, 'SUCCEEDED', p.now - p.n * interval '10 s',
       p.now - p.n * interval '0.01 s', case when p.n % 2 = 0 then p.now end
  from part p;
insert into foliot.idempotency_keys (tenant_id, route, key, request_hash, created_at)
select p.tenant_id, 'test', 'request-' || p.n, '', p.now - p.n * interval '1 s' from part p;
insert into foliot.tenants (id, name, tier, weight, created_at)
select p.job_id, p.name, 'free', 1, p.now from part p where p.n % 10 = 1;
insert into foliot.calendars (tenant_id, name, version, definition, updated_at)
select p.job_id, 'holidays', 1, '{}', p.now from part p where p.n % 10 = 1;
insert into foliot.calendar_versions (tenant_id, name, version, definition, valid_from)
select p.job_id, 'holidays', 1, '{}', p.now from part p where p.n % 10 = 1;
insert into foliot.workers (id, name, host, version, status, queues, capacity, registered_at,
                            last_heartbeat_at)
select p.job_id, p.name, 'test', '0', 'DEAD', '{default}', 100, p.now, p.now - p.n * interval '1 s'
  from part p where p.n % 10 = 1;
insert into foliot.job_parents (parent_id, child_id, tenant_id, needs_success)
select md5('job-' || 1 + p.n % 1000)::uuid, p.job_id, p.tenant_id, true from part p
 where p.kind = 'future';
insert into foliot.completions (child_id, parent_id, execution_id, tenant_id, finished_at, status)
select p.job_id, md5('job-' || 1 + p.n % 1000)::uuid, p.execution_id, p.tenant_id,
       p.now - p.n * interval '1 s', 'SUCCEEDED'
  from part p where p.kind = 'future';
insert into foliot.dead_letters (id, tenant_id, job_id, job_version, job_name, reason, fingerprint,
                                 scheduled_time, failed_at, payload_is_jobs, priority,
                                 total_attempts, replay_at, replayed_as, replayed_at)
select p.execution_id, p.tenant_id, p.job_id, 1, p.name, 'EXHAUSTED', 'f' || p.n % 100, p.now,
       p.now - (p.n + 10000) % 20000 * interval '0.01 s', true, 5, 1,
       case when p.n % 2 = 1 then p.now - p.n * interval '0.01 s' end,
       case p.kind when 'due' then p.execution_id end, case p.kind when 'due' then p.now end
  from part p where p.kind = 'due' or p.kind = 'future' and p.n <= 120000;
insert into foliot.lanes (queue, target_type, handler)
select 'queue-' || p.n, 'HANDLER', 'work' from part p where p.n % 1000 = 1"""


async def fill_handful(db: asyncpg.Connection) -> None:
    """A few of each kind, who works, and the days of the history."""
    session = Session(cast(PooledConnection, db), "the crowd")
    await provide_partitions(session, NOW - timedelta(days=30), days_ahead=36)
    await db.execute(OURS)
    await db.execute(STAFF, NOW, GUEST)
    await db.execute(PART)
    await _choose(db, handful=True)
    await _fill_waiting(db)
    await fill_running(db)


async def fill_waiting(db: asyncpg.Connection) -> None:
    """All others, but nothing runs yet."""
    await db.execute("truncate part")
    await _choose(db, handful=False)
    await _fill_waiting(db)


async def fill_running(db: asyncpg.Connection) -> None:
    """What runs, in living hands and in dead ones."""
    await db.execute(EXECUTIONS, True)


async def _choose(db: asyncpg.Connection, *, handful: bool) -> None:
    kinds = (list(FIRST), list(FIRST.values()))
    await db.execute(CHOOSE, *kinds, GUEST, DEFAULT_TENANT, NOW, CROWD, HANDFUL, handful)
    await db.execute("analyze part")


async def _fill_waiting(db: asyncpg.Connection) -> None:
    for script in (JOBS, NAMES, VERSIONS, SKIPS):
        await db.execute(script)
    await db.execute(EXECUTIONS, False)
    for script in (HISTORY, AROUND):
        await db.execute(script)
