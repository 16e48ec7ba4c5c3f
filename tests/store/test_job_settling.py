"""Before a job changes, what is due is settled under the version in force: once, never twice."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from foliot.core.errors import (
    IllegalTransition,
    JobNotFound,
)
from foliot.core.model import (
    Job,
    MisfirePolicy,
    Schedule,
    ScheduleType,
)
from foliot.core.states import JobState
from foliot.store import jobs
from foliot.store.database import Database
from foliot.store.firing import fire_batch
from foliot.store.job_rows import get, list_versions
from foliot.store.jobs import delete, pause, resume, update
from foliot.store.staging import settle_due, stage_due
from foliot.testing.database import sql
from foliot.testing.jobs import EVERY_MINUTE, create_job, fire_due, new_job, outcomes
from foliot.testing.rows import DEFAULT_TENANT, NOW, JobRow, make_execution

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
Change = Callable[[Database, Job, datetime], Awaitable[object]]


async def test_an_edit_settles_what_is_due_under_the_old_version(database: Database) -> None:
    late = replace(EVERY_MINUTE, misfire_policy=MisfirePolicy.FIRE_ALL, misfire_max_runs=2)
    stored = await create_job(database, new_job(late))
    hourly = replace(stored.job, schedule=replace(late, interval_seconds=3600))
    edited = await update(database, hourly, changed_by="bob", now=NOW + 4 * MINUTE)
    assert await outcomes(database, stored.job) == [
        (NOW + MINUTE, "MISFIRE 2"),
        (NOW + 3 * MINUTE, "1"),
        (NOW + 4 * MINUTE, "1"),
    ]
    assert (edited.last_instant, edited.next_instant) == (NOW + 4 * MINUTE, NOW + HOUR)


async def test_no_edit_brings_back_a_settled_instant(database: Database) -> None:
    stored = await create_job(database)
    await fire_due(database, NOW + MINUTE)
    for run_at in (NOW + MINUTE, NOW + MINUTE / 2):
        once = replace(stored.job, schedule=Schedule(ScheduleType.ONE_TIME, run_at=run_at))
        edited = await update(database, once, changed_by="bob", now=NOW + 1.5 * MINUTE)
        assert (edited.job.status, edited.next_instant) == (JobState.COMPLETED, None)
    # The clock of another server, a minute behind.
    cron = Schedule(ScheduleType.CRON, cron_expression="* * * * *")
    again = replace(stored.job, schedule=cron)
    back = await update(database, again, changed_by="bob", now=NOW + MINUTE / 2)
    assert (back.job.status, back.next_instant) == (JobState.ACTIVE, NOW + 2 * MINUTE)


async def test_a_pause_settles_and_then_nothing_fires(database: Database) -> None:
    stored = await create_job(database)
    ids = (DEFAULT_TENANT, stored.job.job_id)
    paused = await pause(database, *ids, changed_by="bob", note="moving", now=NOW + MINUTE)
    assert (paused.job.status, paused.status_note) == (JobState.PAUSED, "moving")
    assert (paused.job.version, paused.job.schedule_version) == (2, 1)
    await fire_due(database, NOW + 2 * MINUTE)
    assert await outcomes(database, stored.job) == [(NOW + MINUTE, "1")]
    assert await pause(database, *ids, changed_by="eve", now=paused.now) == paused
    versions = await list_versions(database, *ids)
    assert [(one.job.status, one.note) for one in versions] == [
        ("ACTIVE", None),
        ("PAUSED", "moving"),
    ]


@pytest.mark.parametrize(
    ("policy", "settled"),
    [
        (MisfirePolicy.FIRE_ONCE, [(NOW + MINUTE, "PAUSED 9"), (NOW + 10 * MINUTE, "3")]),
        (
            MisfirePolicy.FIRE_ALL,
            [(NOW + MINUTE, "PAUSED 8"), (NOW + 9 * MINUTE, "3"), (NOW + 10 * MINUTE, "3")],
        ),
        (
            MisfirePolicy.SKIP,
            [(NOW + MINUTE, "PAUSED 8"), (NOW + 9 * MINUTE, "3"), (NOW + 10 * MINUTE, "3")],
        ),
    ],
)
async def test_a_resume_goes_by_the_misfire_policy(
    database: Database, policy: MisfirePolicy, settled: list[tuple[datetime, str]]
) -> None:
    schedule = replace(EVERY_MINUTE, misfire_policy=policy, misfire_max_runs=2)
    stored = await create_job(database, new_job(schedule))
    ids = (DEFAULT_TENANT, stored.job.job_id)
    await pause(database, *ids, changed_by="bob", note="moving", now=NOW)
    resumed = await resume(database, *ids, changed_by="bob", now=NOW + 10 * MINUTE)
    assert await outcomes(database, stored.job) == settled
    assert (resumed.job.status, resumed.status_note) == (JobState.ACTIVE, None)
    assert (resumed.job.version, resumed.job.schedule_version) == (3, 1)
    assert resumed.next_instant == NOW + 11 * MINUTE
    assert await resume(database, *ids, changed_by="eve", now=resumed.now) == resumed


async def test_a_job_that_is_over_is_neither_paused_nor_resumed(database: Database) -> None:
    stored = await create_job(database, new_job(Schedule(ScheduleType.IMMEDIATE)))
    await fire_due(database, NOW)
    for change in (pause, resume):
        with pytest.raises(IllegalTransition):
            await change(database, DEFAULT_TENANT, stored.job.job_id, changed_by="bob")


async def test_a_paused_job_without_instants_is_over_when_it_goes_on(database: Database) -> None:
    stored, manual = (
        await create_job(database),
        await create_job(database, new_job(Schedule(ScheduleType.MANUAL))),
    )
    ended = replace(stored.job, schedule=replace(EVERY_MINUTE, end_at=NOW + 1.5 * MINUTE))
    later = NOW + 2 * MINUTE
    await pause(database, DEFAULT_TENANT, stored.job.job_id, changed_by="bob", now=NOW)
    edited = await update(database, ended, changed_by="bob", now=later)
    assert (edited.job.status, edited.next_instant) == (JobState.PAUSED, None)
    await pause(database, DEFAULT_TENANT, manual.job.job_id, changed_by="bob", now=NOW)
    for job_id, status in ((stored.job.job_id, "COMPLETED"), (manual.job.job_id, "ACTIVE")):
        resumed = await resume(database, DEFAULT_TENANT, job_id, changed_by="bob", now=later)
        assert resumed.job.status == status


async def test_a_paused_job_has_missed_what_its_old_schedule_said(database: Database) -> None:
    stored = await create_job(database)
    ids = (DEFAULT_TENANT, stored.job.job_id)
    await pause(database, *ids, changed_by="bob", now=NOW)
    await update(database, replace(stored.job, payload=1), changed_by="bob", now=NOW + 2 * MINUTE)
    assert await outcomes(database, stored.job) == []
    slower = replace(stored.job, schedule=replace(EVERY_MINUTE, interval_seconds=120))
    edited = await update(database, slower, changed_by="bob", now=NOW + 3 * MINUTE)
    assert await outcomes(database, stored.job) == [(NOW + MINUTE, "PAUSED 3")]
    assert edited.job.status is JobState.PAUSED
    assert (edited.last_instant, edited.next_instant) == (NOW + 3 * MINUTE, NOW + 4 * MINUTE)
    await delete(database, *ids, changed_by="bob", now=NOW + 7 * MINUTE)
    assert (await outcomes(database, stored.job))[1:] == [(NOW + 4 * MINUTE, "PAUSED 2")]


async def test_a_deleted_job_is_gone_and_what_waits_is_cancelled(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "CANCELLED_AT_ONCE", 2)
    stored = await create_job(database, new_job(callback_url="https://example.org"))
    job_id = stored.job.job_id
    row = JobRow(job_id, DEFAULT_TENANT, "default", 1, 5, 1, 1, "x", None)
    for status in ("PENDING", "WAITING", "QUEUED", "RETRYING", "RUNNING"):
        await make_execution(database, row, status=status)
    cancelled = await delete(database, DEFAULT_TENANT, job_id, changed_by="bob", now=NOW + MINUTE)
    # The four that waited, and the instant that was due when the job was deleted.
    assert cancelled == 5
    left = await database.fetch_row(
        sql("select status, cancel_requested_at from foliot.executions where job_id = $1"), job_id
    )
    assert left is not None
    assert tuple(left) == ("RUNNING", None)
    error = sql("select distinct status, error ->> 'message' from foliot.attempts")
    assert [tuple(row) for row in await database.fetch(error)] == [
        ("CANCELLED", "its job was deleted")
    ]
    with pytest.raises(JobNotFound):
        await get(database, DEFAULT_TENANT, job_id)
    with pytest.raises(JobNotFound):
        await delete(database, DEFAULT_TENANT, job_id, changed_by="bob")
    versions = await list_versions(database, DEFAULT_TENANT, job_id)
    assert [one.job.status for one in versions] == ["ACTIVE", "DELETED"]


async def pause_it(database: Database, job: Job, now: datetime) -> object:
    return await pause(database, job.tenant_id, job.job_id, changed_by="bob", now=now)


async def edit_it(database: Database, job: Job, now: datetime) -> object:
    faster = replace(job, schedule=replace(EVERY_MINUTE, interval_seconds=30))
    return await update(database, faster, changed_by="bob", now=now)


async def delete_it(database: Database, job: Job, now: datetime) -> object:
    return await delete(database, job.tenant_id, job.job_id, changed_by="bob", now=now)


@pytest.mark.parametrize("change", [pause_it, edit_it, delete_it])
async def test_a_change_and_a_fire_at_once_settle_each_instant_once(
    database: Database, database_url: str, change: Change
) -> None:
    """Seven schedulers against one who changes: whoever comes first has the instant."""
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(Database(database_url)) for _ in range(8)]
        for _ in range(5):
            stored = await create_job(database)
            staged = await stage_due(database, range(64), low=None, high=NOW + HOUR, limit=9)
            fires = [
                settle_due(one, NOW + MINUTE) for one in staged if one.job_id == stored.job.job_id
            ]
            batch = [one for one in fires if one]
            firing = [fire_batch(node, batch, take=True, now=NOW + MINUTE) for node in nodes[1:]]
            await asyncio.gather(*firing, change(nodes[0], stored.job, NOW + MINUTE))
            rows = await outcomes(database, stored.job)
            assert [at for at, _ in rows] == [NOW + MINUTE]
            assert rows[0][1] in ("1", "CANCELLED")
            await database.execute(sql("update foliot.jobs set status = 'DELETED'"))
