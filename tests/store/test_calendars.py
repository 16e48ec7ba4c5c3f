"""A calendar changes from now on: what was due before is settled by the old one, once."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.model import (
    CalendarRule,
    Job,
    MisfirePolicy,
    OverlapPolicy,
    Schedule,
    ScheduleType,
)
from foliot.core.schedule.calendar import Calendar
from foliot.core.states import JobState
from foliot.store import calendars
from foliot.store.calendars import put_calendar
from foliot.store.database import Database
from foliot.store.firing import fire_batch
from foliot.store.job_rows import StoredJob, get, list_versions
from foliot.store.jobs import pause, resume, update
from foliot.store.session import Session
from foliot.store.staging import settle_due, stage_due
from foliot.store.statements import statement
from foliot.testing.database import sql
from foliot.testing.jobs import create_job, fire_due, new_job, outcomes
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_tenant
from foliot.testing.running import until_blocked

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# NOW is a Monday at noon; the job's first instant is on Tuesday at nine.
NINE = NOW - 3 * HOUR
DAILY = Schedule(
    ScheduleType.CRON,
    cron_expression="0 9 * * *",
    calendar="closed",
    misfire_policy=MisfirePolicy.FIRE_ALL,
    overlap_policy=OverlapPolicy.ALLOW,
)
OPEN = Calendar("closed")
NO_THURSDAYS = Calendar("closed", excluded_weekdays=frozenset({4}))
NO_TUESDAY = Calendar(
    "closed", CalendarRule.NEXT_BUSINESS_DAY, excluded_dates=frozenset({date(2027, 3, 2)})
)
LOCK_CALENDAR = statement("calendars/lock_calendar")
CLOSE_TUESDAY = sql("""
update foliot.calendars
   set definition = definition || '{"rule": "NEXT_BUSINESS_DAY", "excluded_dates": ["2027-03-02"]}'
""")
WRITTEN = sql("select version, definition, updated_at from foliot.calendars where tenant_id = $1")


async def put(database: Database, calendar: Calendar, now: datetime = NOW) -> int:
    return await put_calendar(database, DEFAULT_TENANT, calendar, changed_by="carol", now=now)


async def daily(database: Database) -> Job:
    return (await create_job(database, new_job(DAILY))).job


async def next_instant(database: Database, job: Job) -> datetime | None:
    return (await get(database, job.tenant_id, job.job_id)).next_instant


async def test_a_calendar_is_kept_for_its_tenant_and_its_versions_are_counted(
    database: Database,
) -> None:
    tenant = await make_tenant(database)
    assert await put(database, OPEN) == 1
    assert await put(database, NO_THURSDAYS, NOW + HOUR) == 2
    assert await put_calendar(database, tenant, OPEN, changed_by="dave", now=NOW) == 1
    (row,) = await database.fetch(WRITTEN, DEFAULT_TENANT)
    assert (row["version"], row["updated_at"]) == (2, NOW + HOUR)
    assert row["definition"]["excluded_weekdays"] == [4]


async def test_what_cannot_be_a_calendar_is_refused(database: Database) -> None:
    for wrong in (Calendar(""), Calendar("x", excluded_weekdays=frozenset(range(1, 8)))):
        with pytest.raises(InvalidInput):
            await put(database, wrong)
    with pytest.raises(InvalidInput):
        await put(database, Calendar("a\0"))


async def test_what_is_due_is_settled_by_the_old_calendar_and_the_rest_planned_by_the_new(
    database: Database,
) -> None:
    await put(database, OPEN)
    job = await daily(database)
    friday = NINE + 4 * DAY + HOUR
    moved = replace(
        NO_THURSDAYS, rule=CalendarRule.NEXT_BUSINESS_DAY, excluded_weekdays=frozenset({4, 6})
    )
    await put(database, moved, friday)
    # Thursday ran, though it is closed by now; Saturday's is moved to Sunday.
    fired = [(NINE + n * DAY, "1") for n in (1, 2, 3, 4)]
    assert await outcomes(database, job) == fired
    stored = await get(database, job.tenant_id, job.job_id)
    assert (stored.last_instant, stored.next_instant) == (NINE + 4 * DAY, NINE + 6 * DAY)
    versions = await list_versions(database, job.tenant_id, job.job_id)
    assert [(one.changed_by, one.note, one.valid_from) for one in versions] == [
        ("alice", None, NOW),
        ("carol", "calendar closed changed", friday),
    ]
    assert (stored.job.version, stored.job.schedule_version) == (2, 2)


async def test_a_day_that_is_closed_now_is_skipped_when_it_comes(database: Database) -> None:
    await put(database, OPEN)
    job = await daily(database)
    await put(database, NO_THURSDAYS)
    for n in range(1, 6):
        await fire_due(database, NINE + n * DAY)
    assert await outcomes(database, job) == [
        (NINE + DAY, "2"),
        (NINE + 2 * DAY, "2"),
        (NINE + 3 * DAY, "CALENDAR 1"),
        (NINE + 4 * DAY, "2"),
        (NINE + 5 * DAY, "2"),
    ]


async def test_what_was_staged_by_the_old_calendar_does_not_fire(database: Database) -> None:
    """Its next instant stays, and yet the one after it would be wrong."""
    await put(database, OPEN)
    job = await daily(database)
    tuesday = NINE + DAY
    (due,) = await stage_due(database, range(64), low=None, high=tuesday + HOUR, limit=10)
    staged = settle_due(due, tuesday)
    assert staged is not None
    await put(database, replace(NO_THURSDAYS, excluded_weekdays=frozenset({3})))
    report = await fire_batch(database, [staged], now=tuesday)
    assert len(report.passed_over) == 1
    assert await next_instant(database, job) == tuesday


async def test_a_paused_job_has_missed_what_the_old_calendar_said(database: Database) -> None:
    await put(database, OPEN)
    job = await daily(database)
    await pause(database, job.tenant_id, job.job_id, changed_by="bob", now=NOW)
    wednesday = NINE + 2 * DAY + HOUR
    await put(database, NO_THURSDAYS, wednesday)
    stored = await get(database, job.tenant_id, job.job_id)
    assert (stored.job.status, stored.next_instant) == (JobState.PAUSED, NINE + 3 * DAY)
    assert await outcomes(database, job) == [(NINE + DAY, "PAUSED 2")]
    await resume(database, job.tenant_id, job.job_id, changed_by="bob", now=wednesday + DAY)
    assert (await outcomes(database, job))[1:] == [(NINE + 3 * DAY, "CALENDAR 1")]


async def test_a_job_that_has_no_instant_left_is_over(database: Database) -> None:
    await put(database, OPEN)
    ending = replace(DAILY, end_at=NINE + DAY + HOUR)
    job = (await create_job(database, new_job(ending))).job
    await put(database, NO_TUESDAY)
    stored = await get(database, job.tenant_id, job.job_id)
    assert (stored.job.status, stored.next_instant) == (JobState.COMPLETED, None)


async def test_only_jobs_that_use_it_are_touched(database: Database) -> None:
    await put(database, OPEN)
    await put(database, Calendar("other"))
    tenant = await make_tenant(database)
    await put_calendar(database, tenant, OPEN, changed_by="dave", now=NOW)
    job, left = await daily(database), await daily(database)
    plain = replace(left, schedule=replace(DAILY, calendar="other"))
    await update(database, plain, changed_by="bob", now=NOW)
    others = [
        plain,
        (await create_job(database, new_job(DAILY, tenant_id=tenant))).job,
        (await create_job(database, new_job(replace(DAILY, calendar=None)))).job,
    ]
    before = [await get(database, one.tenant_id, one.job_id, NOW) for one in others]
    await put(database, NO_THURSDAYS)
    assert [await get(database, one.tenant_id, one.job_id, NOW) for one in others] == before
    assert (await get(database, job.tenant_id, job.job_id)).job.version == 2


async def test_the_same_definition_again_leaves_the_jobs_alone(database: Database) -> None:
    await put(database, NO_THURSDAYS)
    job = await daily(database)
    assert await put(database, NO_THURSDAYS, NOW + 9 * DAY) == 2
    assert (await get(database, job.tenant_id, job.job_id)).job.version == 1


async def test_many_jobs_are_changed_by_pages(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calendars, "PAGE_JOBS", 2)
    await put(database, OPEN)
    jobs = [await daily(database) for _ in range(5)]
    await update(database, replace(jobs[0], priority=1), changed_by="bob", now=NOW)
    await put(database, NO_THURSDAYS, NINE + 2 * DAY)
    for job in jobs:
        assert [what for _, what in await outcomes(database, job)] == [
            "2" if job is jobs[0] else "1"
        ] * 2
        assert await next_instant(database, job) == NINE + 3 * DAY


async def save_new(database: Database, _: Job) -> StoredJob:
    return await create_job(database, new_job(DAILY))


async def save_edited(database: Database, job: Job) -> StoredJob:
    edited = replace(job, schedule=replace(DAILY, max_runs=5))
    return await update(database, edited, changed_by="bob", now=NOW)


@pytest.mark.parametrize("save", [save_new, save_edited])
async def test_a_job_that_is_saved_meanwhile_keeps_to_the_new_calendar(
    database: Database, database_url: str, save: Callable[[Database, Job], Awaitable[StoredJob]]
) -> None:
    await put(database, OPEN)
    job = await daily(database)
    async with Database(database_url) as node, node.transaction() as session:
        assert await session.fetch_row(LOCK_CALENDAR, DEFAULT_TENANT, "closed") is not None
        saving = asyncio.ensure_future(save(database, job))
        await until_blocked(session)
        await session.execute(CLOSE_TUESDAY)
    assert (await saving).next_instant == NINE + 2 * DAY


async def test_a_change_waits_for_a_job_that_is_just_being_saved(
    database: Database, database_url: str
) -> None:
    await put(database, OPEN)
    read = statement("calendars/read_calendar")
    async with Database(database_url) as node, node.transaction() as session:
        assert await session.fetch_value(read, DEFAULT_TENANT, "closed")
        changing = asyncio.create_task(put(database, NO_TUESDAY))
        await until_blocked(session)
        async with Database(database_url) as third:
            job = (await create_job(third, new_job(DAILY))).job
    await changing
    assert await next_instant(database, job) == NINE + 2 * DAY


async def test_changes_edits_and_fires_at_once_lose_no_instant(
    database: Database, database_url: str
) -> None:
    """Nor do they wait for each other in a ring: everybody locks the calendar, jobs, then flows."""
    await put(database, OPEN)
    jobs = [await daily(database) for _ in range(6)]
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(Database(database_url)) for _ in range(3)]
        for n in range(1, 13):
            now = NINE + n * DAY
            closed = replace(NO_THURSDAYS, excluded_weekdays=frozenset({1 + n % 7}))
            edit = replace(jobs[n % 6], schedule=replace(DAILY, max_runs=1000 + n))
            await asyncio.gather(
                put(nodes[0], closed, now),
                update(nodes[1], edit, changed_by="bob", now=now),
                fire_due(nodes[2], now),
                fire_due(database, now),
            )
    for job in jobs:
        found = await outcomes(database, job)
        assert [at for at, _ in found] == [NINE + n * DAY for n in range(1, 13)]


async def test_many_jobs_are_settled_and_planned_with_few_questions(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transaction has a time limit, and all of its jobs wait for it."""
    asked: list[str] = []
    ask = Session._ask

    async def counted(session: Session, name: str, *rest: Any, **more: Any) -> Any:  # noqa: ANN401
        asked.append(name)
        return await ask(session, name, *rest, **more)

    await put(database, OPEN)
    jobs = [await daily(database) for _ in range(40)]
    paused = await daily(database)
    await pause(database, paused.tenant_id, paused.job_id, changed_by="bob", now=NOW)
    monkeypatch.setattr(Session, "_ask", counted)
    await put(database, NO_THURSDAYS, NINE + 2 * DAY + HOUR)
    assert len(asked) < 20, asked
    for job in jobs:
        assert await outcomes(database, job) == [(NINE + DAY, "1"), (NINE + 2 * DAY, "1")]
    assert await outcomes(database, paused) == [(NINE + DAY, "PAUSED 2")]
    assert {await next_instant(database, job) for job in (*jobs, paused)} == {NINE + 3 * DAY}
