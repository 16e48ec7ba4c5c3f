"""How the ledger is read: in pages, of one tenant, in a window, while everything goes on."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from foliot.core.errors import InvalidInput
from foliot.core.ids import EPOCH, JobId
from foliot.core.model import Job, MisfirePolicy
from foliot.core.schedule.ledger import ProblemKind
from foliot.core.schedule.stretches import Window
from foliot.store import ledger, ledger_rows
from foliot.store.database import Database
from foliot.store.ledger import TooManyOutcomes, check_page, open_scope
from foliot.store.ledger_rows import Outcomes
from foliot.store.statements import statement
from foliot.testing.database import sql
from foliot.testing.jobs import EVERY_MINUTE, create_job, fire_due, new_job
from foliot.testing.ledger import check_ledger, check_one, counts, end_all
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_tenant

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TICK = timedelta(microseconds=1)
FORGET_ENDED = sql("delete from foliot.attempts where job_id = $1 and scheduled_time = $2")


async def job_with_three_fires(database: Database) -> Job:
    """At one, two and three minutes; the first two have ended."""
    job = (await create_job(database)).job
    for n in (1, 2):
        await fire_due(database, NOW + n * MINUTE)
    await end_all(database, job.job_id, NOW + 2 * MINUTE)
    await fire_due(database, NOW + 3 * MINUTE)
    return job


@pytest.mark.parametrize("look", ["live", "ended", "skips"])
async def test_what_finishes_between_two_looks_is_neither_missed_nor_doubled(
    database: Database, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    job = await job_with_three_fires(database)
    pages = getattr(Outcomes, look)

    async def after_an_end(self: Outcomes, window: Window) -> AsyncIterator[list[asyncpg.Record]]:
        await end_all(database, job.job_id, NOW + 3 * MINUTE)
        async for rows in pages(self, window):
            yield rows

    monkeypatch.setattr(Outcomes, look, after_an_end)
    found = await check_one(database, NOW + 3 * MINUTE + MINUTE / 2)
    assert (counts(found), found.problems) == ((3, 3, 0, 0), ())


async def test_what_is_fired_after_the_look_at_the_job_is_not_judged(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await job_with_three_fires(database)
    look = ledger_rows.list_jobs

    async def then_fire(*args: Any, **more: Any) -> object:  # noqa: ANN401
        found = await look(*args, **more)
        await fire_due(database, NOW + 4 * MINUTE)
        return found

    monkeypatch.setattr(ledger, "list_jobs", then_fire)
    found = await check_one(database, NOW + 4 * MINUTE + MINUTE / 2)
    assert (counts(found), found.problems) == ((3, 3, 0, 1), ())


async def test_every_page_is_read(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of two rows, where several end in the same moment, and are live, and are skipped."""
    monkeypatch.setattr(ledger_rows, "ROWS", 2)
    job = (await create_job(database, new_job(replace(EVERY_MINUTE, max_runs=20)))).job
    for n in (1, 2, 3, 4, 5):
        await fire_due(database, NOW + n * MINUTE)
    await end_all(database, job.job_id, NOW + 5 * MINUTE)
    for n in (6, 9, 12, 15, 16, 17, 18):
        await fire_due(database, NOW + n * MINUTE)
    await create_job(database)
    first, second = await check_ledger(database, NOW + 18 * MINUTE + MINUTE / 2)
    by_id = {first.job_id: first, second.job_id: second}
    found = by_id[job.job_id]
    assert (counts(found), found.problems) == ((18, 12, 6, 0), ())


async def test_only_what_lies_in_the_window_is_judged(database: Database) -> None:
    job = await job_with_three_fires(database)
    await fire_due(database, NOW + 9 * MINUTE)
    await database.execute(FORGET_ENDED, job.job_id, NOW + MINUTE)
    now = NOW + 9 * MINUTE + MINUTE / 2
    asked = {"from_": NOW + 2 * MINUTE, "to": NOW + 6 * MINUTE}
    found = await check_one(database, now, **asked)
    assert (counts(found), found.problems) == ((4, 2, 2, 0), ())
    found = await check_one(database, now, from_=NOW + 6 * MINUTE)
    assert (counts(found), found.problems) == ((4, 1, 3, 0), ())
    found = await check_one(database, now, to=NOW + 2 * MINUTE)
    assert found.found == {ProblemKind.MISSING: 1}
    with pytest.raises(InvalidInput, match="to: is not after from"):
        await open_scope(database, from_=now, to=now)


async def test_what_has_left_the_database_is_not_missed(database: Database) -> None:
    today: datetime = await database.fetch_value(
        sql("select date_trunc('day', statement_timestamp(), 'UTC')")
    )
    schedule = replace(EVERY_MINUTE, interval_seconds=6 * 3600, misfire_policy=MisfirePolicy.SKIP)
    job = (await create_job(database, new_job(schedule), today)).job
    for n in range(1, 10):
        now = today + n * 6 * HOUR
        await fire_due(database, now)
        await end_all(database, job.job_id, now)
    scope = await open_scope(database, now=today + 3 * DAY)
    assert (scope.window.from_, scope.clamped) == (EPOCH, False)
    for day in (today - DAY, today):
        await database.execute(sql(f"drop table foliot.attempts_{day:%Y%m%d}"))
    scope = await open_scope(database, now=today + 3 * DAY)
    assert (scope.window.from_, scope.clamped) == (today + DAY, True)
    found = await check_one(database, today + 9 * 6 * HOUR + TICK)
    assert (counts(found), found.problems) == ((6, 6, 0, 0), ())
    scope = await open_scope(database, from_=today + 2 * DAY, now=today + 3 * DAY)
    assert (scope.window.from_, scope.clamped) == (today + 2 * DAY, False)


async def test_a_tenant_is_told_of_its_own_jobs(database: Database) -> None:
    other = await make_tenant(database)
    ours = [(await create_job(database)).job.job_id for _ in range(3)]
    theirs = (await create_job(database, new_job(tenant_id=other))).job
    now = NOW + MINUTE / 2
    assert [each.job_id for each in await check_ledger(database, now, DEFAULT_TENANT)] == sorted(
        ours
    )
    assert [each.job_id for each in await check_ledger(database, now, other)] == [theirs.job_id]
    everybody = [each.job_id for each in await check_ledger(database, now)]
    assert everybody == sorted([*ours, theirs.job_id])
    assert await check_ledger(database, now, DEFAULT_TENANT, job_id=theirs.job_id) == []
    # Also where row security does not look: as the engine.
    jobs = statement("ledger/list_jobs")
    listed = await database.fetch(jobs, DEFAULT_TENANT, None, None, 9)
    assert [row["job_id"] for row in listed] == sorted(ours)
    assert await database.fetch(jobs, DEFAULT_TENANT, theirs.job_id, None, 9) == []
    assert await check_ledger(database, now, job_id=JobId(uuid4())) == []


async def test_a_job_that_cannot_be_read_keeps_no_other_from_being_checked(
    database: Database,
) -> None:
    stored = [await create_job(database) for _ in range(2)]
    await fire_due(database, NOW + MINUTE)
    await database.execute(
        sql(
            "update foliot.job_versions set definition = jsonb_set(definition, '{schedule,warp}',"
            " '9') where job_id = $1"
        ),
        stored[0].job.job_id,
    )
    found = {each.job_id: each for each in await check_ledger(database, NOW + MINUTE + MINUTE / 2)}
    assert found[stored[0].job.job_id].found == {ProblemKind.UNREADABLE: 1}
    assert "warp" in found[stored[0].job.job_id].problems[0].why
    assert found[stored[1].job.job_id].holds
    await database.execute(sql("delete from foliot.job_versions"))
    found = {each.job_id: each for each in await check_ledger(database, NOW + 2 * MINUTE)}
    assert found[stored[1].job.job_id].found == {ProblemKind.UNREADABLE: 1}


async def test_who_has_little_time_is_told_that_it_takes_more(database: Database) -> None:
    await job_with_three_fires(database)
    scope = await open_scope(database, now=NOW + 4 * MINUTE)
    assert (await check_page(database, scope, rows_max=3)).rows == 3
    with pytest.raises(TooManyOutcomes):
        await check_page(database, scope, rows_max=2)
