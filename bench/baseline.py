"""The bare pipeline: fire, claim, run, finish with nothing that makes it a product.

No states, no versions, no lanes, no fair ranks, no overlap check, no ledger: a row counter instead
of a rank, one index for each need. It is what this machine and PostgreSQL can do with the same
shapes of statement, and so the measure of what our promises cost.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg

from bench.contender import DAY, RESULT, Call, Claimed, Due
from foliot.core.ids import JobId, scheduled_execution

SCHEMA: Final = """
create schema bare;
create table bare.jobs (
  id          uuid        primary key,
  shard       smallint    not null,
  tenant      integer     not null,
  active      boolean     not null default true,
  next_run_at timestamptz,
  last_run_at timestamptz,
  payload     jsonb
) with (fillfactor = 70);
create index jobs_due on bare.jobs (shard, next_run_at) where active and next_run_at is not null;

create table bare.executions (
  id             uuid        primary key,
  job_id         uuid        not null,
  tenant         integer     not null,
  queue          smallint    not null default 1,
  rank           float8,
  scheduled_time timestamptz not null,
  available_at   timestamptz not null,
  fence          integer     not null default 0,
  worker_id      uuid,
  claimed_at     timestamptz,
  payload        jsonb
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.01);
create index executions_claim on bare.executions (queue, rank)
  where worker_id is null and rank is not null;
create index executions_release on bare.executions (available_at) where rank is null;
create index executions_job on bare.executions (job_id);

create table bare.attempts (
  id             uuid        not null,
  fence          integer     not null,
  job_id         uuid        not null,
  tenant         integer     not null,
  status         text        not null,
  scheduled_time timestamptz not null,
  worker_id      uuid,
  claimed_at     timestamptz,
  finished_at    timestamptz not null,
  payload        jsonb,
  result         jsonb
) partition by range (finished_at);
create table bare.attempts_all partition of bare.attempts default;
create unique index attempts_identity on bare.attempts (id, fence, finished_at);
create index attempts_job on bare.attempts (job_id, finished_at desc);

create table bare.skips (
  job_id  uuid        not null,
  instant timestamptz not null,
  reason  text        not null,
  primary key (job_id, instant)
);
create sequence bare.ranks cache 1000;

create function bare.claim(p_worker uuid, p_bite integer, p_floor float8)
returns table (id uuid, fence integer, rank float8) language plpgsql as $$
begin
  perform pg_advisory_xact_lock(1);
  return query
  with picked as materialized (
    select e.id from bare.executions e
     where e.queue = 1 and e.worker_id is null and e.rank is not null and e.rank >= p_floor
     order by e.rank limit p_bite for update skip locked)
  update bare.executions e set worker_id = p_worker, claimed_at = now(), fence = e.fence + 1
   where e.id = any(array(select p.id from picked p))
  returning e.id, e.fence, e.rank;
end $$;
"""

ADD_JOBS: Final = """
insert into bare.jobs (id, shard, tenant, next_run_at, payload)
select gen_random_uuid(), n % 64, 1, now() - interval '100 s' + n * interval '100 us', '{"a": 1}'
  from generate_series(1, $1::integer) n"""

FILL_QUEUE: Final = """
insert into bare.executions (id, job_id, tenant, rank, scheduled_time, available_at, payload)
select gen_random_uuid(), j.id, j.tenant, row_number() over (order by j.next_run_at),
       j.next_run_at, j.next_run_at, j.payload from bare.jobs j"""

READ_DUE: Final = """
select id, next_run_at from bare.jobs
 where shard = any($1::smallint[]) and active and next_run_at <= now() and next_run_at >= $2
 order by next_run_at limit $3"""

# The jobs that still wait for the expected instant, moved on; what follows inserts for them.
ADVANCE: Final = """
with due as materialized (
  select x.id, x.instant, x.next, j.tid
    from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::timestamptz[])
           x(id, job_id, instant, next)
   cross join lateral (
         select j.ctid as tid from bare.jobs j
          where j.id = x.job_id and j.next_run_at = x.instant and j.active
            for no key update skip locked) j),
fired as (
  update bare.jobs j set next_run_at = d.next, last_run_at = d.instant
    from due d where j.ctid = d.tid
  returning d.id, d.instant, j.id as job_id, j.tenant, j.payload)"""

FIRE: Final = (
    ADVANCE
    + """
insert into bare.executions (id, job_id, tenant, rank, scheduled_time, available_at, payload)
select f.id, f.job_id, f.tenant, nextval('bare.ranks'), f.instant, f.instant, f.payload from fired f
    on conflict do nothing"""
)

SKIP: Final = (
    ADVANCE
    + """
insert into bare.skips (job_id, instant, reason)
select f.job_id, f.instant, 'MISFIRE' from fired f on conflict do nothing"""
)

ENQUEUE: Final = """
insert into bare.executions (id, job_id, tenant, rank, scheduled_time, available_at, payload)
select x.id, j.id, j.tenant, nextval('bare.ranks'), now(), now(), j.payload
  from unnest($1::uuid[], $2::uuid[]) x(id, job_id)
 cross join lateral (select * from bare.jobs j where j.id = x.job_id) j
    on conflict do nothing"""

RELEASE: Final = """
with ready as materialized (
  select e.id from bare.executions e where e.rank is null and e.available_at <= now()
   order by e.available_at limit $1::integer for update skip locked)
update bare.executions e set rank = nextval('bare.ranks')
 where e.id = any(array(select r.id from ready r))
returning e.id"""

FINISH: Final = """
with done as (
  delete from bare.executions e where e.id = any($1::uuid[]) and e.worker_id = $3 returning e.*)
insert into bare.attempts
select d.id, d.fence, d.job_id, d.tenant, 'SUCCEEDED', d.scheduled_time, d.worker_id, d.claimed_at,
       now(), d.payload, (($2::text[])[array_position($1::uuid[], d.id)])::jsonb
  from done d on conflict do nothing"""

CLAIM: Final = "select id, fence, rank from bare.claim($1::uuid, $2::integer, $3::float8)"
PARK: Final = "update bare.executions set rank = null where worker_id is null"
COUNT: Final = """
select (select count(*) from bare.executions), (select count(*) from bare.attempts)"""


class Baseline:
    """The bare pipeline as a contender."""

    name = "baseline"

    async def install(self, url: str) -> None:
        db = await asyncpg.connect(url)
        await db.execute(SCHEMA)
        await db.close()

    async def add_jobs(self, db: asyncpg.Connection, count: int) -> None:
        await db.execute(ADD_JOBS, count)

    async def add_worker(self, db: asyncpg.Connection, worker_id: UUID) -> None:
        """Nobody asks who claims."""

    async def fill_queue(self, db: asyncpg.Connection) -> None:
        await db.execute(FILL_QUEUE)

    async def count(self, db: asyncpg.Connection) -> tuple[int, int]:
        live, history = (await db.fetch(COUNT))[0]
        return live, history

    def tables(self) -> tuple[str, ...]:
        return "bare.jobs", "bare.executions"

    def read_due(self, low: datetime, limit: int) -> Call:
        return Call(READ_DUE, (list(range(64)), low, limit))

    def fire(self, due: Sequence[Due]) -> Call:
        return Call(FIRE, self._advance(due))

    def skip(self, due: Sequence[Due]) -> Call:
        return Call(SKIP, self._advance(due))

    def claim(self, worker_id: UUID, bite: int, floor: float) -> Call:
        return Call(CLAIM, (worker_id, bite, floor))

    def finish(self, worker_id: UUID, claimed: Sequence[Claimed]) -> Call:
        ids = [row.id for row in claimed]
        return Call(FINISH, (ids, [RESULT] * len(ids), worker_id))

    def enqueue(self, jobs: Sequence[UUID], requests: Sequence[UUID]) -> Call:
        return Call(ENQUEUE, (list(requests), list(jobs)))

    def park(self) -> Call:
        return Call(PARK, ())

    def release(self, limit: int) -> Call:
        return Call(RELEASE, (limit,))

    def _advance(self, due: Sequence[Due]) -> tuple[object, ...]:
        return (
            [scheduled_execution(JobId(row.job_id), row.instant) for row in due],
            [row.job_id for row in due],
            [row.instant for row in due],
            [row.instant + DAY for row in due],
        )
