"""Jobs that owe thousands of instants: all are settled, a call at a time, and nobody waits long."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from foliot.core.model import (
    Job,
    MisfirePolicy,
    OverlapPolicy,
    Schedule,
    ScheduleType,
)
from foliot.core.schedule.calendar import Calendar
from foliot.scheduler import firing
from foliot.scheduler.fire import FirePass
from foliot.store import job_settling
from foliot.store.calendars import put_calendar
from foliot.store.database import Database
from foliot.store.firing import FireReport, JobFire, fire_batch, fire_in
from foliot.store.jobs import pause, resume
from foliot.testing.database import sql
from foliot.testing.jobs import create_job, new_job
from foliot.testing.rows import DEFAULT_TENANT, NOW
from foliot.testing.schedulers import ManualScheduler

TALLY: Final = sql(
    "select (select count(*) from foliot.executions),"
    " (select coalesce(sum(count), 0)::integer from foliot.skips)"
)
SECOND: Final = timedelta(seconds=1)


def every(seconds: float, policy: MisfirePolicy = MisfirePolicy.FIRE_ALL) -> Schedule:
    return Schedule(
        ScheduleType.INTERVAL,
        interval_seconds=seconds,
        overlap_policy=OverlapPolicy.ALLOW,
        misfire_policy=policy,
        misfire_max_runs=10_000,
    )


async def make(database: Database, schedule: Schedule) -> Job:
    return (await create_job(database, new_job(schedule))).job


async def tally(database: Database) -> tuple[int, int]:
    """Executions and skips."""
    row = await database.fetch_row(TALLY)
    assert row is not None
    return row[0], row[1]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each call of a scheduler has written."""
    seen: list[int] = []

    async def noted(database: Database, batch: Sequence[JobFire], **how: Any) -> FireReport:  # noqa: ANN401 - as it is
        seen.append(sum(one.rows for one in batch))
        return await fire_batch(database, batch, **how)

    monkeypatch.setattr(firing, "fire_batch", noted)
    return seen


async def owner(database: Database, now: datetime) -> ManualScheduler:
    node = ManualScheduler(database)
    await node.share(now)
    return node


async def test_a_job_that_owes_thousands_is_fired_in_one_pass(
    database: Database, sizes: list[int]
) -> None:
    await make(database, every(0.001))
    now = NOW + 2.5 * SECOND
    node = await owner(database, now)
    await node.stage(now)
    assert await node.fire(now) == FirePass(fired=2500)
    assert await tally(database) == (2500, 0)
    assert sizes == [1000, 1000, 500]


async def test_a_call_has_an_end_however_many_owe_much(
    database: Database, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "ROWS_AT_ONCE", 20)
    for _ in range(30):
        await make(database, every(1))
    now = NOW + 10 * SECOND
    node = await owner(database, now)
    await node.stage(now)
    assert await node.fire(now) == FirePass(fired=300)
    assert await tally(database) == (300, 0)
    assert max(sizes) == 20
    assert len(node.staged) == 30


async def test_whoever_sweeps_has_the_same_end(
    database: Database, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "ROWS_AT_ONCE", 20)
    for _ in range(30):
        await make(database, every(1))
    node = ManualScheduler(database)
    report = await node.sweep.run_once(NOW + 10 * SECOND)
    assert report.settled == 0  # a first look is only a look
    report = await node.sweep.run_once(NOW + 12 * SECOND)
    assert report.settled == 360
    assert (await tally(database), max(sizes)) == ((360, 0), 24)


@pytest.mark.parametrize(
    ("seconds", "policy", "fired"),
    [(1, MisfirePolicy.FIRE_ALL, 2500), (0.02, MisfirePolicy.SKIP, 3001)],
)
async def test_a_resume_settles_all_however_many_rounds_it_takes(
    database: Database, seconds: float, policy: MisfirePolicy, fired: int
) -> None:
    job = await make(database, every(seconds, policy))
    ids = (job.tenant_id, job.job_id)
    await pause(database, *ids, changed_by="bob", now=NOW)
    resumed = await resume(database, *ids, changed_by="bob", now=NOW + 2500 * SECOND)
    assert await tally(database) == (fired, 2500 / seconds - fired)
    assert resumed.next_instant == NOW + (2500 + seconds) * SECOND


async def test_a_calendar_settles_all_its_jobs_however_many_rounds_it_takes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    async def noted(session: Any, batch: Sequence[JobFire], **how: Any) -> FireReport:  # noqa: ANN401 - as it is
        sizes.append(sum(one.rows for one in batch))
        return await fire_in(session, batch, **how)

    monkeypatch.setattr(job_settling, "fire_in", noted)
    monkeypatch.setattr(job_settling, "ROWS_AT_ONCE", 20)
    open_, shut = Calendar("days"), Calendar("days", excluded_weekdays=frozenset({7}))
    await put_calendar(database, DEFAULT_TENANT, open_, changed_by="carol", now=NOW)
    schedule = Schedule(
        ScheduleType.INTERVAL,
        interval_seconds=1,
        overlap_policy=OverlapPolicy.ALLOW,
        misfire_policy=MisfirePolicy.FIRE_ALL,
        calendar="days",
    )
    for _ in range(8):
        await make(database, schedule)
    now = NOW + 7 * SECOND
    await put_calendar(database, DEFAULT_TENANT, shut, changed_by="carol", now=now)
    assert await tally(database) == (56, 0)
    assert sizes == [21, 21, 14]
