"""A scheduler that is told of something does it at once: its own pauses never end here.

And whoever makes rows claimable tells the workers, by queue.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest

from foliot.core.ids import SHARDS, SchedulerId, shard_of
from foliot.core.limits import key_limit
from foliot.core.model import After, Schedule, ScheduleType
from foliot.runtime.chance import fresh_id
from foliot.runtime.clock import SystemClock
from foliot.runtime.metrics import LOOP_PASSES
from foliot.runtime.service import beside
from foliot.scheduler import after, release, stage
from foliot.scheduler.service import Connections, SchedulerService
from foliot.store.admitting import put_limits
from foliot.store.database import Database
from foliot.store.jobs import create
from foliot.store.server_clock import read_clock
from foliot.store.shards import Scheduler
from foliot.testing.database import sql
from foliot.testing.following import end_one, make_child, make_parent
from foliot.testing.jobs import new_job
from foliot.testing.loopback import Loopback
from foliot.testing.rows import DEFAULT_TENANT, NOW, JobRow, make_execution, make_job
from foliot.testing.schedulers import ManualScheduler
from foliot.testing.soon import soon
from foliot.transport.port import Matter

NEVER_SECONDS: Final = 3600.0
CLAIMABLE = sql("select count(*) from foliot.executions where rank is not null")
HEARERS: Final = {
    Matter.STAGE: "stage at hand",
    Matter.RELEASE: "release",
    Matter.ADMIT: "admit",
    Matter.OVERLAP: "release overlaps",
    Matter.AFTER: "fire after",
}


@pytest.fixture(autouse=True)
def _pauses_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "PAUSE_SECONDS", NEVER_SECONDS)
    monkeypatch.setattr(after, "PAUSE_SECONDS", NEVER_SECONDS)
    monkeypatch.setattr(stage, "AT_HAND_PAUSE_SECONDS", NEVER_SECONDS)


def passes(loop: str) -> float:
    return float(LOOP_PASSES.labels(loop)._value.get())


@asynccontextmanager
async def resting_scheduler(database: Database) -> AsyncIterator[Loopback]:
    """One whose trades have made their first pass, and make another only when they are told to."""
    transport = Loopback()
    transport.begin()
    before = {loop: passes(loop) for loop in HEARERS.values()}
    node = Scheduler(SchedulerId(fresh_id()), "testhost", "0")
    connections = Connections(database, database, database)
    service = SchedulerService(connections, SystemClock(), node, transport)
    owned = sql("select count(*) from foliot.shard_leases where owner = $1")

    async def rests() -> bool:
        begun = all(passes(loop) > before[loop] for loop in before)
        return begun and await database.fetch_value(owned, node.id) == SHARDS

    async with beside(service.run(), name="scheduler"):
        await soon(rests)
        yield transport


async def idle_job(database: Database) -> JobRow:
    return await make_job(database, next_instant=None)


async def make_due_row(database: Database) -> None:
    now = await read_clock(database)
    job = await idle_job(database)
    await make_execution(database, job, status="PENDING", rank=None, available_at=now)


async def make_limited_row(database: Database) -> None:
    limit = key_limit(DEFAULT_TENANT, "k", 1)
    await put_limits(database, [limit])
    keys = [str(row[0]) for row in await database.fetch(sql("select key from foliot.limits"))]
    await make_execution(
        database,
        await idle_job(database),
        status="WAITING",
        hold="LIMIT",
        rank=None,
        limit_keys=keys,
    )


async def make_held_row(database: Database) -> None:
    await make_execution(
        database,
        await idle_job(database),
        status="WAITING",
        hold="OVERLAP",
        trigger="SCHEDULE",
        rank=None,
        available_at=await read_clock(database),
    )


async def make_followed_end(database: Database) -> None:
    parent = await make_parent(database)
    await make_child(database, After((parent.job_id,)))
    await end_one(database, parent, at=await read_clock(database))


@pytest.mark.parametrize(
    ("matter", "make"),
    [
        (Matter.RELEASE, make_due_row),
        (Matter.ADMIT, make_limited_row),
        (Matter.OVERLAP, make_held_row),
        (Matter.AFTER, make_followed_end),
    ],
)
async def test_a_trade_that_is_told_does_not_wait(
    database: Database, matter: Matter, make: Callable[[Database], Awaitable[None]]
) -> None:
    async with resting_scheduler(database) as transport:
        await make(database)
        transport.publish(matter)

        async def is_claimable() -> bool:
            return bool(await database.fetch_value(CLAIMABLE) == 1)

        await soon(is_claimable)
        assert (Matter.WORK, frozenset({"default"})) in transport.published


async def test_a_job_that_is_due_at_once_is_fired_when_its_shard_is_told_of(
    database: Database,
) -> None:
    async with resting_scheduler(database) as transport:
        job = new_job(Schedule(ScheduleType.IMMEDIATE))
        await create(database, job, changed_by="alice")
        staged, released = (passes(HEARERS[each]) for each in (Matter.STAGE, Matter.RELEASE))
        transport.publish(Matter.STAGE, ["no shard of ours"])
        transport.publish(Matter.RELEASE)

        async def is_released() -> bool:
            return passes(HEARERS[Matter.RELEASE]) > released

        await soon(is_released)
        assert passes(HEARERS[Matter.STAGE]) == staged
        transport.publish(Matter.STAGE, [str(shard_of(job.job_id))])

        async def is_fired() -> bool:
            return bool(await database.fetch_value(CLAIMABLE) == 1)

        await soon(is_fired)
        assert (Matter.WORK, frozenset({"default"})) in transport.published


async def test_a_batch_that_fired_nothing_tells_nobody(database: Database) -> None:
    transport = Loopback()
    scheduler = ManualScheduler(database, transport)
    await scheduler.share(NOW)
    await make_job(database)
    await scheduler.stage(NOW)
    await scheduler.fire(NOW)
    assert transport.published == [(Matter.WORK, frozenset({"default"}))]
    await scheduler.stage(NOW)
    await scheduler.fire(NOW)
    assert len(transport.published) == 1
