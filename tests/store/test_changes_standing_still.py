"""Whoever changes a job and stands still in the midst of it keeps no other job from firing."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from foliot.core.limits import key_limit
from foliot.core.model import (
    ConcurrencyLimit,
    Job,
    MisfirePolicy,
    OverlapPolicy,
    Schedule,
    ScheduleType,
)
from foliot.core.schedule.calendar import Calendar
from foliot.store.admitting import put_limits
from foliot.store.calendars import put_calendar
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.errors import TransactionConflict
from foliot.store.jobs import delete, pause, resume, update
from foliot.store.releasing import ReleaseReport, release_due
from foliot.testing.database import sql
from foliot.testing.jobs import EVERY_MINUTE, create_job, fire_due, new_job, outcomes
from foliot.testing.points import Point
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import DEFAULT_TENANT, NOW
from foliot.testing.running import until_blocked

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LATER = NOW + HOUR
OPEN, CLOSED = Calendar("closed"), Calendar("closed", excluded_weekdays=frozenset({7}))
MINUTELY = Schedule(
    ScheduleType.CRON,
    cron_expression="* * * * *",
    calendar="closed",
    overlap_policy=OverlapPolicy.ALLOW,
)
FLOWS_HELD = sql(
    "select count(*) from pg_locks l join pg_database d on d.oid = l.database"
    " where d.datname = current_database() and l.locktype = 'advisory' and l.classid = 20"
)
PARKED = sql("select status, available_at, rank, start_by from foliot.executions")
Change = Callable[[Database, Job], Awaitable[object]]


async def pause_it(database: Database, job: Job) -> object:
    return await pause(database, job.tenant_id, job.job_id, changed_by="bob", now=LATER)


async def resume_it(database: Database, job: Job) -> object:
    return await resume(database, job.tenant_id, job.job_id, changed_by="bob", now=LATER)


async def edit_it(database: Database, job: Job) -> object:
    faster = replace(job, schedule=replace(EVERY_MINUTE, interval_seconds=30))
    return await update(database, faster, changed_by="bob", now=LATER)


async def delete_it(database: Database, job: Job) -> object:
    return await delete(database, job.tenant_id, job.job_id, changed_by="bob", now=LATER)


async def close_it(database: Database, job: Job) -> object:
    return await put_calendar(database, job.tenant_id, CLOSED, changed_by="bob", now=LATER)


async def put_closed(database: Database) -> None:
    await put_calendar(database, DEFAULT_TENANT, OPEN, changed_by="alice", now=NOW)


@pytest.mark.direct
@pytest.mark.parametrize("change", [pause_it, resume_it, edit_it, delete_it, close_it])
async def test_a_change_that_is_not_committed_keeps_no_other_job_of_its_flow_from_firing(
    database: Database, database_url: str, change: Change
) -> None:
    """Locks are kept until the end: who holds none of the flow before the commit never did."""
    await put_closed(database)
    job = (await create_job(database, new_job(MINUTELY))).job
    if change is resume_it:
        await pause(database, job.tenant_id, job.job_id, changed_by="bob", now=NOW)
    other = (await create_job(database, now=LATER)).job
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        stopped = proxy.at_point(Point("before", "commit"), proxy.fall_silent)
        changing = asyncio.ensure_future(change(far, job))
        async with asyncio.timeout(10):
            await stopped.struck.wait()
        with suppress(TransactionConflict):
            await fire_due(database, LATER + MINUTE)
        assert await outcomes(database, other) == [(LATER + MINUTE, "1")]
        assert await outcomes(database, job) == []
        proxy.speak()
        await changing
    (fired,) = [what for at, what in await outcomes(database, job) if at == LATER]
    assert fired in ("1", "3", "CANCELLED")


@pytest.mark.parametrize("late", [timedelta(seconds=1), HOUR])
async def test_what_a_change_fires_is_found_by_the_next_release(
    database: Database, late: timedelta
) -> None:
    """It says that it is available since the change: the release looks back for seconds only."""
    once = Schedule(ScheduleType.ONE_TIME, run_at=LATER, misfire_policy=MisfirePolicy.FIRE_ONCE)
    job = (await create_job(database, new_job(once, start_deadline_seconds=7200.0))).job
    now = LATER + late
    await update(database, replace(job, payload=1), changed_by="bob", now=now)
    (row,) = await database.fetch(PARKED)
    assert tuple(row) == ("PENDING", now, None, LATER + 2 * HOUR)
    low = ReleaseReport(0, 0, 0, now).low
    assert (await release_due(database, low, now=now)).released == 1
    (row,) = await database.fetch(PARKED)
    assert (row["status"], row["available_at"]) == ("QUEUED", now)
    assert row["rank"] is not None


async def test_what_a_change_fires_under_a_limit_waits_for_its_slot(database: Database) -> None:
    limited = replace(new_job(), concurrency=ConcurrencyLimit(limit=1))
    job = (await create_job(database, limited)).job
    await pause(database, job.tenant_id, job.job_id, changed_by="bob", now=NOW + MINUTE)
    (row,) = await database.fetch(sql("select status, hold from foliot.executions"))
    assert tuple(row) == ("WAITING", "LIMIT")


async def test_a_request_that_waits_for_a_changed_limit_holds_no_flow(
    database: Database,
) -> None:
    """The limit of a key is written with the job that has it, and kept until the commit."""
    job = (await create_job(database)).job
    key = key_limit(DEFAULT_TENANT, "key", 1)
    request = Request(DEFAULT_TENANT, "POST /v1/executions", "r1", NOW)
    async with database.transaction() as session:
        await put_limits(session, [key])
        wanted = Wanted(job.job_id, concurrency=replace(key, at_most=2))
        asking = asyncio.ensure_future(enqueue(database, request, [wanted], NOW))
        await until_blocked(session)
        held = await session.fetch_value(FLOWS_HELD)
    await asyncio.wait([asking])
    assert held == 0
