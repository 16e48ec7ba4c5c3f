"""Somebody's long transaction keeps every dead row: a queue's head still moves as fast.

What was taken from the head leaves entries that no vacuum may remove meanwhile. Each scan of such a
head begins above them. That they are there is seen by a scan that is told to look at everything.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import pytest_asyncio

from foliot.core.ids import JobId, scheduled_execution
from foliot.store.statements import statement
from foliot.testing.database import DatabaseFactory
from foliot.testing.rows import DEFAULT_TENANT, NOW
from foliot.testing.touched import measure

TAKEN: Final = 3_000
BATCH: Final = 100
# A batch, and the two entries that an index may give too many for each of its pages.
FEW: Final = 3 * BATCH

JOBS: Final = """
insert into foliot.jobs (id, tenant_id, shard, status, version, schedule_version, next_instant,
                         next_run_at, queue, lane_id, priority, overlap_policy, name, created_at,
                         updated_at)
select gen_random_uuid(), $1, 0, 'ACTIVE', 1, 1, d.at, d.at, 'default', 1, 5, 'SKIP', 'job-' || n,
       $2, $2
  from generate_series(1, $3::integer) n
 cross join lateral (select $2::timestamptz + n * interval '1 s') d(at)"""
EXECUTIONS: Final = """
insert into foliot.executions (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id,
                               priority, rank, scheduled_time, available_at, job_name, created_at)
select gen_random_uuid(), j.tenant_id, j.id, 1, $1, 'SCHEDULE', 'default', 1, 5,
       case $1::text when 'QUEUED' then row_number() over (order by j.next_run_at) end,
       j.next_run_at, j.next_run_at, j.name, j.next_run_at
  from foliot.jobs j"""
WORKER: Final = """
insert into foliot.workers (id, name, host, version, status, queues, capacity, registered_at,
                            last_heartbeat_at)
values (gen_random_uuid(), 'test', 'test', '0', 'ACTIVE', '{default}', 100, $1, $1) returning id"""
LANE: Final = """
insert into foliot.lanes (queue, target_type, handler) values ('default', 'HANDLER', 'work')"""
FIRED: Final = """
update foliot.jobs set next_run_at = next_run_at + interval '9 days' where next_run_at <= $1"""

SECOND: Final = timedelta(seconds=1)
LAST: Final = NOW + (TAKEN + BATCH) * SECOND


@pytest_asyncio.fixture
async def db(server: DatabaseFactory) -> AsyncIterator[asyncpg.Connection]:
    """A session as the superuser, whom no time limit stops, with a lane and jobs a second apart."""
    name = urlsplit(await server.create()).path.removeprefix("/")
    db = await asyncpg.connect(server.server.url(name, "postgres"))
    await db.execute(LANE)
    await db.execute(JOBS, DEFAULT_TENANT, NOW, TAKEN + BATCH)
    yield db
    await db.close()


@asynccontextmanager
async def pinned(db: asyncpg.Connection, server: DatabaseFactory) -> AsyncIterator[None]:
    """From here to the end somebody may still want to see every row as it is now."""
    name = await db.fetchval("select current_database()")
    other = await asyncpg.connect(server.server.url(name, "postgres"))
    try:
        async with other.transaction(isolation="repeatable_read"):
            await other.fetch("select from foliot.jobs limit 1")
            yield
    finally:
        await other.close()


async def entries(
    db: asyncpg.Connection, index: str, sql: str, *arguments: object
) -> tuple[int, int]:
    """How many rows came back, how many entries of the index were read; then it is undone."""
    transaction = db.transaction()
    await transaction.start()
    rows, touched = await measure(db, sql, *arguments)
    await transaction.rollback()
    return rows, touched.entries[index]


async def test_a_claim_begins_above_what_was_claimed(
    server: DatabaseFactory, db: asyncpg.Connection
) -> None:
    claim = statement("executions/claim_ready").sql
    worker_id = await db.fetchval(WORKER, NOW)
    await db.execute(EXECUTIONS, "QUEUED")
    async with pinned(db, server):
        await db.fetch(claim, worker_id, "default", [1], TAKEN, 10.0, NOW)
        later = (worker_id, "default", [1], BATCH)
        soon = NOW + 11 * SECOND
        rows, read = await entries(db, "executions_claim", claim, *later, 10.0, soon)
        assert rows == BATCH
        assert read <= FEW
        rows, read = await entries(db, "executions_claim", claim, *later, None, soon)
        assert rows == BATCH
        assert read >= TAKEN


async def test_staging_begins_above_what_was_fired(
    server: DatabaseFactory, db: asyncpg.Connection
) -> None:
    stage = statement("jobs/stage_due").sql
    fired = NOW + TAKEN * SECOND
    async with pinned(db, server):
        await db.execute(FIRED, fired)
        _, read = await entries(db, "jobs_due", stage, [0], fired, LAST, BATCH)
        assert BATCH - 1 <= read <= FEW
        _, read = await entries(db, "jobs_due", stage, [0], None, LAST, BATCH)
        assert read >= TAKEN


async def test_a_release_begins_above_what_was_released(
    server: DatabaseFactory, db: asyncpg.Connection
) -> None:
    release = statement("executions/release_due").sql
    await db.execute(EXECUTIONS, "PENDING")
    async with pinned(db, server):
        await db.fetch(release, None, TAKEN, LAST)
        low = NOW + TAKEN * SECOND
        _, read = await entries(db, "executions_release", release, low, BATCH, LAST)
        assert BATCH <= read <= FEW
        _, read = await entries(db, "executions_release", release, None, BATCH, LAST)
        assert read >= TAKEN


ROUNDS: Final = 12
DUE: Final = """
select id, next_instant from foliot.jobs order by id limit $1"""
PAGES: Final = "select pg_stat_get_xact_blocks_fetched('foliot.executions'::regclass)"
DAY: Final = timedelta(days=1)


class Rounds:
    """The same jobs fired, claimed and finished over and over, with statistics that were taken
    when nothing was under way: to a planner the table seems to have no rows, and many pages."""

    def __init__(self, db: asyncpg.Connection, worker_id: UUID, batch: int = BATCH) -> None:
        self._db = db
        self._worker_id = worker_id
        self._batch = batch
        self._jobs: list[UUID] = []
        self._now = LAST

    async def begin(self) -> None:
        rows = await self._db.fetch(DUE, self._batch)
        self._jobs = [row["id"] for row in rows]
        await self._db.execute("update foliot.jobs set next_instant = $1, next_run_at = $1", LAST)

    async def fire(self) -> int:
        ids = [scheduled_execution(JobId(job), self._now) for job in self._jobs]
        count = len(ids)
        arguments = [["default"], [DEFAULT_TENANT], self._jobs, None, [self._now] * count]
        arguments += [[1] * count, [self._now + DAY] * count, *[None] * 7, ids, *[None] * 7]
        return await self._read("jobs/fire_due", *arguments, False, False, self._now, None)

    async def claim(self) -> int:
        return await self._read("executions/claim_ready", *self._bite())

    async def claim_pages(self) -> int:
        """The same, but told are the pages of the table itself."""
        async with self._db.transaction():
            before = await self._db.fetchval(PAGES)
            await self._db.execute(statement("executions/claim_ready").sql, *self._bite())
            return int(await self._db.fetchval(PAGES)) - int(before)

    async def finish(self) -> int:
        rows = await self._db.fetch("select id, fence from foliot.executions order by id")
        ids, fences = [row["id"] for row in rows], [row["fence"] for row in rows]
        sent = (self._worker_id, ids, fences, *[None] * 9, self._now)
        read = await self._read("executions/finish", *sent)
        await self._db.execute("analyze foliot.executions")
        self._now += DAY
        return read

    def _bite(self) -> tuple[object, ...]:
        return self._worker_id, "default", [1], self._batch, 1.0, self._now

    async def _read(self, name: str, *arguments: object) -> int:
        """Entries of all indexes of the live table that the statement has read."""
        async with self._db.transaction():
            _, touched = await measure(self._db, statement(name).sql, *arguments)
        return sum(
            count for index, count in touched.entries.items() if index.startswith("executions_")
        )


async def test_firing_claiming_and_finishing_read_no_more_after_many_rounds(
    server: DatabaseFactory, db: asyncpg.Connection
) -> None:
    rounds = Rounds(db, await db.fetchval(WORKER, NOW))
    await rounds.begin()
    async with pinned(db, server):
        reads = [
            (await rounds.fire(), await rounds.claim(), await rounds.finish())
            for _ in range(ROUNDS)
        ]
    assert await db.fetchval("select count(*) from foliot.attempts") == ROUNDS * BATCH
    for last in reads[-1]:
        assert last <= 5 * BATCH, reads


async def test_a_claim_does_not_look_for_versions_to_remove(
    server: DatabaseFactory, db: asyncpg.Connection
) -> None:
    """An update that changes no key of an index makes the server look, whenever a page of that
    index is full, which of the rows that it leads to are dead. A claim reads 6,500 pages of the
    table; 10 to 130 more if it looks, at most 4 more or fewer if it does not."""
    rounds = Rounds(db, await db.fetchval(WORKER, NOW), 10 * BATCH)
    await rounds.begin()
    pages = list[int]()
    async with pinned(db, server):
        for _ in range(ROUNDS):
            await rounds.fire()
            pages.append(await rounds.claim_pages())
            await rounds.finish()
    later = pages[1:]
    assert max(later) - min(later) <= 20, pages


HELD: Final = """
update foliot.executions e set status = 'RUNNING', worker_id = $1, claimed_at = $2, rank = null
 where e.id in (select e.id from foliot.executions e where e.worker_id is null
                 order by e.scheduled_time limit $3)
returning e.id"""
NOBODY: Final = UUID(int=0)


async def test_what_a_worker_has_finished_is_not_read_again(
    server: DatabaseFactory, db: asyncpg.Connection
) -> None:
    """Neither by itself, when it looks for what to stop, nor by who rescues what it left behind."""
    await db.execute(EXECUTIONS, "QUEUED")
    worker_id = await db.fetchval(WORKER, NOW)
    async with pinned(db, server):
        await db.execute(HELD, worker_id, NOW - 3600 * SECOND, TAKEN)
        await db.execute("delete from foliot.executions where worker_id = $1", worker_id)
        held = [row["id"] for row in await db.fetch(HELD, worker_id, NOW, BATCH)]
        await db.execute("update foliot.executions set cancel_requested_at = $1", NOW)
        stop = statement("workers/list_cancelled").sql
        rows, read = await entries(db, "executions_pkey", stop, worker_id, held)
        assert rows == BATCH
        assert read <= FEW
        # One of them it began long ago.
        await db.execute(
            "update foliot.executions set claimed_at = $2 where id = $1",
            held[0],
            NOW - 3600 * SECOND,
        )
        await db.execute(
            "update foliot.workers set status = 'DEAD', started = $2 where id = $1",
            worker_id,
            held[:9],
        )
        left = statement("executions/list_left").sql
        rows, read = await entries(db, "executions_worker", left, NOBODY, NOBODY, TAKEN, NOW)
        assert rows == BATCH
        assert read <= FEW
        everywhere = statement("executions/list_lost").sql
        rows, read = await entries(db, "executions_worker", everywhere, NOBODY, NOBODY, TAKEN)
        assert rows == BATCH
        assert read >= TAKEN
