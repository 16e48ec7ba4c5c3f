"""Sweeping by hand: what nobody fires is fired by anybody, and nobody is disturbed at work."""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final
from uuid import UUID

import pytest

from foliot.core.ids import JobId, shard_of
from foliot.core.model import Schedule, ScheduleType
from foliot.runtime.metrics import OVERDUE_JOBS
from foliot.scheduler import sweep
from foliot.scheduler.sweep import SweepReport
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseUnreachable
from foliot.testing.database import sql
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import NOW, JobRow, fresh_id, make_job
from foliot.testing.running import until_blocked
from foliot.testing.schedulers import ManualScheduler

EXECUTIONS: Final = sql("select count(*) from foliot.executions")
FIRED: Final = sql("select job_id from foliot.executions order by 1")


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


async def make_due(database: Database, seconds: float, **changes: object) -> JobRow:
    instant = at(seconds)
    schedule = Schedule(ScheduleType.ONE_TIME, run_at=instant)
    return await make_job(database, schedule, next_instant=instant, **changes)


async def fired(database: Database) -> set[JobId]:
    return {row["job_id"] for row in await database.fetch(FIRED)}


async def look(node: ManualScheduler, seconds: float) -> SweepReport:
    return await node.sweep.run_once(at(seconds))


@pytest.fixture
async def owner(database: Database) -> ManualScheduler:
    """Holds everything, and fires nothing unless it is told to."""
    node = ManualScheduler(database)
    await node.share(NOW)
    return node


@pytest.fixture
async def other(database: Database, owner: ManualScheduler) -> ManualScheduler:
    """Has looked before, and holds nothing."""
    node = ManualScheduler(database)
    await node.share(NOW)
    assert node.shards.owned == node.shards.without_owner == frozenset()
    await look(node, 0)
    assert owner.shards.owned
    return node


async def test_what_is_overdue_by_a_second_or_less_is_its_owners(
    database: Database, other: ManualScheduler
) -> None:
    await make_due(database, 0)
    for seconds in (0.5, 0.75, 1.0):
        assert await look(other, seconds) == SweepReport(0, 0)
    assert OVERDUE_JOBS._value.get() == 0


async def test_what_stands_still_is_swept_at_the_second_look(
    database: Database, other: ManualScheduler
) -> None:
    job = await make_due(database, 0)
    assert await look(other, 1.1) == SweepReport(1, 0)
    assert OVERDUE_JOBS._value.get() == 1
    assert await look(other, 1.35) == SweepReport(1, 1)
    assert await fired(database) == {job.job_id}
    assert await look(other, 1.6) == SweepReport(0, 0)


async def test_a_shard_that_was_swept_is_swept_again_at_the_first_look(
    database: Database, other: ManualScheduler
) -> None:
    first = await make_due(database, 0)
    await look(other, 1.1)
    await look(other, 1.35)
    await make_due(database, 1, id=next(ids_of_shard(shard_of(first.job_id))))
    assert await look(other, 1.6) == SweepReport(0, 0)
    assert await look(other, 2.1) == SweepReport(1, 1)


def ids_of_shard(shard: int) -> Iterator[JobId]:
    return (job for job in map(JobId, iter(fresh_id, None)) if shard_of(job) == shard)


async def test_an_owner_that_makes_progress_is_left_alone(
    database: Database, owner: ManualScheduler, other: ManualScheduler
) -> None:
    """Until what it has not come to has been overdue for long."""
    jobs = [
        await make_due(database, number / 1000, id=job_id)
        for number, job_id in enumerate(islice(ids_of_shard(7), 20))
    ]
    await owner.stage(at(0))
    for number in range(7):
        assert await look(other, 1.1 + number / 4) == SweepReport(20 - number, 0)
        await owner.fire(at(number / 1000))
    assert await fired(database) == {job.job_id for job in jobs[:7]}
    assert await look(other, 3.1) == SweepReport(13, 13)


async def test_an_owner_that_is_at_work_in_another_shard_is_left_alone(
    database: Database, owner: ManualScheduler, other: ManualScheduler
) -> None:
    first, second = ids_of_shard(7), ids_of_shard(8)
    for number in range(8):
        await make_due(database, number / 1000, id=next(first))
        await make_due(database, 0.1, id=next(second))
    await owner.stage(at(0))
    for number in range(7):
        assert (await look(other, 1.11 + number / 4)).settled == 0
        await owner.fire(at(number / 1000))
    assert await look(other, 3.11) == SweepReport(9, 9)


async def test_a_shard_without_an_owner_is_swept_at_once(
    database: Database, owner: ManualScheduler, other: ManualScheduler
) -> None:
    job = await make_due(database, 1)
    await owner.shards.leave()
    node = ManualScheduler(database)
    node.shards.without_owner = frozenset(range(64))
    assert await look(node, 2.1) == SweepReport(1, 1)
    assert await fired(database) == {job.job_id}
    assert await look(other, 2.2) == SweepReport(0, 0)


async def test_nobody_waits_for_a_job_that_is_locked_until_it_is_long_overdue(
    database_url: str, database: Database, other: ManualScheduler
) -> None:
    locked, free = await make_due(database, 0), await make_due(database, 0)
    await look(other, 1.1)
    async with Database(database_url) as far, far.transaction() as session:
        await session.execute(
            sql("select from foliot.jobs where id = $1 for update"), locked.job_id
        )
        assert await look(other, 1.35) == SweepReport(2, 1)
        assert await fired(database) == {free.job_id}
        taking = asyncio.create_task(look(other, 3.1))
        await until_blocked(session)
    assert await taking == SweepReport(1, 1)
    assert await fired(database) == {locked.job_id, free.job_id}


async def test_what_is_overdue_in_our_own_shards_is_counted_and_left_to_our_firing(
    database: Database, owner: ManualScheduler
) -> None:
    await make_due(database, 0)
    await owner.stage(at(0))
    for seconds, overdue in ((0, 0), (1, 0), (1.1, 1), (2, 1), (5, 1), (6, 1)):
        assert await look(owner, seconds) == SweepReport(0, 0)
        assert OVERDUE_JOBS._value.get() == overdue
    await owner.fire(at(6))
    await look(owner, 6.1)
    assert OVERDUE_JOBS._value.get() == 0


async def test_after_an_outage_a_first_look_is_only_a_look(
    database_url: str, owner: ManualScheduler, database: Database
) -> None:
    assert owner.shards.owned
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        node = ManualScheduler(far)
        await node.share(NOW)
        await look(node, 0)
        await make_due(database, 1)
        proxy.cut_at(b"", deliver=False)
        with pytest.raises((CommitUnknown, DatabaseUnreachable)):
            await look(node, 2)
        node.clock.seconds += 58
        assert await look(node, 60) == SweepReport(1, 0)
        assert await look(node, 60.25) == SweepReport(1, 1)


async def test_two_that_sweep_at_once_fire_each_instant_once(
    database_url: str, database: Database, other: ManualScheduler
) -> None:
    for number in range(300):
        await make_due(database, number / 1000)
    async with Database(database_url) as far:
        third = ManualScheduler(far)
        await third.share(NOW)
        for when in (1.7, 1.95, 2.2):
            await asyncio.gather(look(other, when), look(third, when))
    assert await database.fetch_value(EXECUTIONS) == 300


async def test_a_full_page_is_followed_by_another_at_once(
    database: Database, other: ManualScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "PAGE", 10)
    for number in range(25):
        await make_due(database, number / 100)
    looks = []
    for number in range(12):
        looks.append((await look(other, 3.3 + number / 4)).settled)
        if sum(looks) < 20:
            assert other.sweep.pause_seconds == 0 or not looks[-1]
    assert sum(looks) == 25
    assert other.sweep.pause_seconds == sweep.PAUSE_SECONDS


async def test_a_job_that_is_refused_does_not_stand_in_the_way(
    database: Database, other: ManualScheduler
) -> None:
    # In two shards: what stands in one is swept with whatever else does.
    await make_due(database, 0, id=UUID(int=1), start_deadline_seconds=1e300)
    await look(other, 1.1)
    assert await look(other, 1.35) == SweepReport(1, 0)
    good = await make_due(database, 0.5, id=UUID(int=2))
    await look(other, 1.6)
    assert await look(other, 1.85) == SweepReport(2, 1)
    assert await fired(database) == {good.job_id}


async def test_a_refused_job_does_not_make_its_shard_stand_still(
    database: Database, owner: ManualScheduler, other: ManualScheduler
) -> None:
    ids = ids_of_shard(7)
    await make_due(database, 0, id=next(ids), start_deadline_seconds=1e300)
    await look(other, 1.1)
    await look(other, 1.35)
    for number in range(10):
        await make_due(database, 6 + number / 1000, id=next(ids))
    await owner.stage(at(6))
    for number in range(4):
        assert await look(other, 7.1 + number / 4) == SweepReport(11 - number, 0)
        await owner.fire(at(6 + number / 1000))
