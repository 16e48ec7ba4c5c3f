"""Jobs are created once and changed by one at a time; every version is kept."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from foliot.core.errors import (
    InvalidInput,
    InvalidSchedule,
    JobAlreadyExists,
    JobNotFound,
    UnresolvedKey,
    VersionConflict,
)
from foliot.core.ids import JobId, shard_of
from foliot.core.model import (
    CommandTarget,
    ConcurrencyLimit,
    DeadLetterPolicy,
    HandlerTarget,
    HttpTarget,
    ManagedBy,
    RateLimit,
    RetryPolicy,
    Schedule,
    ScheduleType,
    Target,
)
from foliot.core.states import JobState
from foliot.store.database import Database
from foliot.store.job_rows import get, list_versions
from foliot.store.jobs import create, delete, pause, resume, update
from foliot.testing.database import sql
from foliot.testing.jobs import EVERY_MINUTE, create_job, fire_due, new_job
from foliot.testing.rows import DEFAULT_TENANT, NOW, fresh_id, make_tenant

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LIMITS = sql("select key, max_running from foliot.limits")
KEPT = sql(
    "select j.shard, j.notify, j.tags, j.limit_keys, l.queue, l.region, l.requires,"
    " l.target_type, l.handler from foliot.jobs j join foliot.lanes l on l.id = j.lane_id"
)


@pytest.mark.parametrize(
    "target",
    [
        HttpTarget("https://example.org/x", "PUT", {"A": "b"}),
        HandlerTarget("send"),
        CommandTarget(("ls", "-l"), {"HOME": "/"}),
    ],
)
async def test_a_job_is_read_as_it_was_created(database: Database, target: Target) -> None:
    job = new_job(
        Schedule(
            ScheduleType.CRON,
            cron_expression="0 10 * * *",
            timezone="Europe/Zurich",
            start_at=NOW,
            end_at=NOW + 90 * 24 * HOUR,
            jitter_seconds=60,
        ),
        target=target,
        description="what it is for",
        managed_by=ManagedBy.CODE,
        payload={"a": [1, None, "ü"]},
        retry_policy=RetryPolicy(max_attempts=7, poison_window_seconds=60),
        start_deadline_seconds=1.5,
        priority=2,
        queue="reports",
        requires=frozenset({"gpu", "big"}),
        region="eu",
        concurrency=ConcurrencyLimit("x", 3),
        rate_limit=RateLimit(10, 60),
        dead_letter=DeadLetterPolicy(auto_replay_after_seconds=3600),
        callback_url="https://example.org/done",
        tags=("b", "a"),
        labels={"team": "core"},
    )
    stored = await create_job(database, job)
    assert stored.job == job
    assert (await get(database, job.tenant_id, job.job_id)).job == job
    (version,) = await list_versions(database, job.tenant_id, job.job_id)
    assert (version.job, version.valid_from, version.changed_by) == (job, NOW, "alice")
    row = await database.fetch_row(KEPT)
    handler = target.name if isinstance(target, HandlerTarget) else None
    kind = {HttpTarget: "HTTP", HandlerTarget: "HANDLER", CommandTarget: "COMMAND"}[type(target)]
    assert row is not None
    assert tuple(row) == (
        shard_of(job.job_id),
        True,
        ["b", "a"],
        [f"job:{job.job_id}", f"key:{DEFAULT_TENANT}:x"],
        "reports",
        "eu",
        ["big", "gpu"],
        kind,
        handler,
    )


async def test_creating_a_job_again_changes_nothing(database: Database, database_url: str) -> None:
    job = new_job()
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(Database(database_url)) for _ in range(8)]
        stored = await asyncio.gather(*(create_job(node, job) for node in nodes))
    assert [one.job for one in stored] == [job] * 8
    again = await create_job(database, replace(job, priority=1), NOW + HOUR)
    assert (again.job, again.created_at) == (job, NOW)
    assert len(await list_versions(database, job.tenant_id, job.job_id)) == 1


async def test_a_name_belongs_to_one_job_that_is_not_over(database: Database) -> None:
    first = await create_job(database)
    twin = new_job(name=first.job.name)
    with pytest.raises(JobAlreadyExists, match=first.job.name):
        await create_job(database, twin)
    other = await create_job(database)
    with pytest.raises(JobAlreadyExists):
        await update(database, replace(other.job, name=first.job.name), changed_by="bob", now=NOW)
    tenant = await make_tenant(database)
    await create_job(database, replace(twin, tenant_id=tenant, job_id=JobId(fresh_id())))
    await delete(database, DEFAULT_TENANT, first.job.job_id, changed_by="alice", now=NOW)
    await create_job(database, twin)


async def test_another_tenants_job_is_not_there(database: Database) -> None:
    stored = await create_job(database)
    tenant, job_id = await make_tenant(database), stored.job.job_id
    theirs = replace(stored.job, tenant_id=tenant)
    with pytest.raises(JobNotFound):
        await get(database, tenant, job_id)
    with pytest.raises(JobNotFound):
        await list_versions(database, tenant, job_id)
    with pytest.raises(JobNotFound):
        await update(database, theirs, changed_by="eve")
    with pytest.raises(JobAlreadyExists):
        await create(database, theirs, changed_by="eve")
    for change in (pause, resume, delete):
        with pytest.raises(JobNotFound):
            await change(database, tenant, job_id, changed_by="eve")
    assert (await get(database, DEFAULT_TENANT, job_id, stored.now)) == stored


@pytest.mark.parametrize(
    ("schedule", "first", "status"),
    [
        (EVERY_MINUTE, NOW + MINUTE, JobState.ACTIVE),
        (Schedule(ScheduleType.ONE_TIME, run_at=NOW - HOUR), NOW - HOUR, JobState.ACTIVE),
        (Schedule(ScheduleType.IMMEDIATE), NOW, JobState.ACTIVE),
        (Schedule(ScheduleType.DELAYED, delay_seconds=60), NOW + MINUTE, JobState.ACTIVE),
        (Schedule(ScheduleType.MANUAL), None, JobState.ACTIVE),
    ],
)
async def test_a_new_job_waits_for_its_first_instant(
    database: Database, schedule: Schedule, first: datetime | None, status: JobState
) -> None:
    stored = await create_job(database, new_job(schedule))
    assert (stored.next_instant, stored.job.status) == (first, status)


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        (replace(EVERY_MINUTE, end_at=NOW), "end_at"),  # not one instant
        (Schedule(ScheduleType.CRON, cron_expression="0 0 30 2 *"), "cron_expression"),
        (Schedule(ScheduleType.CRON, cron_expression="@daily", timezone="Mars"), "timezone"),
        (Schedule(ScheduleType.INTERVAL), "interval_seconds"),
        (Schedule(ScheduleType.MANUAL, run_at=NOW), "run_at"),
    ],
)
async def test_a_schedule_that_cannot_be_kept_is_refused_at_the_last_door(
    database: Database, schedule: Schedule, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await create_job(database, new_job(schedule))
    assert refused.value.field == field
    stored = await create_job(database)
    changed = replace(stored.job, schedule=schedule)
    with pytest.raises(InvalidInput) as refused:
        await update(database, changed, changed_by="bob", now=NOW)
    assert refused.value.field == field
    assert await get(database, DEFAULT_TENANT, stored.job.job_id, NOW) == stored


async def test_a_schedule_that_was_taken_once_is_no_hindrance_to_other_edits(
    database: Database,
) -> None:
    """Also if it would be refused today."""
    stored = await create_job(database)
    await database.execute(
        sql(
            "update foliot.job_versions set definition ="
            " jsonb_set(definition, '{schedule,misfire_grace_seconds}', '0.5')"
        )
    )
    kept = (await get(database, DEFAULT_TENANT, stored.job.job_id, NOW)).job
    edited = await update(database, replace(kept, priority=1), changed_by="bob", now=NOW)
    assert (edited.job.priority, edited.job.version) == (1, 2)


async def test_who_created_a_job_stays_its_creator(database: Database) -> None:
    stored = await create(database, new_job(created_by="mallory"), changed_by="alice", now=NOW)
    assert stored.job.created_by == "alice"
    changed = replace(stored.job, created_by="mallory", managed_by=ManagedBy.APPLY)
    edited = await update(database, changed, changed_by="bob", now=NOW)
    assert (edited.job.created_by, edited.job.managed_by) == ("alice", ManagedBy.APPLY)


async def test_a_version_of_an_older_foliot_has_the_defaults(database: Database) -> None:
    stored = await create_job(database)
    await database.execute(
        sql(
            "update foliot.job_versions set definition ="
            " definition - array['description', 'created_by', 'managed_by', 'dead_letter']"
        )
    )
    read = (await get(database, DEFAULT_TENANT, stored.job.job_id, NOW)).job
    assert read == replace(stored.job, created_by="")


async def test_what_cannot_be_kept_is_refused_with_its_place(database: Database) -> None:
    with pytest.raises(InvalidInput, match="payload") as refused:
        await create_job(database, new_job(payload={"a": "\x00"}))
    assert refused.value.field is not None
    with pytest.raises(InvalidInput):
        await create_job(database, new_job(name="a\ud800"))
    with pytest.raises(InvalidSchedule, match="no calendar named 'nowhere'"):
        await create_job(database, new_job(replace(EVERY_MINUTE, calendar="nowhere")))
    with pytest.raises(UnresolvedKey):
        await create_job(database, new_job(concurrency=ConcurrencyLimit("${payload.user}", 1)))


async def test_jobs_saved_at_once_share_a_new_lane(database: Database, database_url: str) -> None:
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(Database(database_url)) for _ in range(8)]
        await asyncio.gather(*(create_job(node, new_job(queue="new")) for node in nodes))
    lanes = await database.fetch(sql("select distinct lane_id from foliot.jobs"))
    assert len(lanes) == 1
    assert await database.fetch_value(sql("select count(*) from foliot.lanes")) == 1


async def test_of_many_edits_of_one_version_one_wins(database: Database, database_url: str) -> None:
    stored = await create_job(database)

    async def edit(node: Database, number: int) -> int | None:
        changed = replace(stored.job, payload=number)
        try:
            await update(node, changed, changed_by=f"{number}", expected_version=1, now=NOW)
        except VersionConflict:
            return None
        return number

    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(Database(database_url)) for _ in range(8)]
        results = await asyncio.gather(*(edit(node, n) for n, node in enumerate(nodes)))
    winners = [one for one in results if one is not None]
    assert len(winners) == 1
    winner = winners[0]
    after = await get(database, DEFAULT_TENANT, stored.job.job_id)
    assert (after.job.version, after.job.payload) == (2, winner)
    versions = await list_versions(database, DEFAULT_TENANT, stored.job.job_id)
    assert [one.changed_by for one in versions] == ["alice", f"{winner}"]


async def test_only_a_new_schedule_raises_the_schedule_version(database: Database) -> None:
    stored = await create_job(database)
    payload = replace(stored.job, payload=1, queue="other")
    edited = await update(database, payload, changed_by="bob", now=NOW + HOUR / 120)
    assert (edited.job.version, edited.job.schedule_version) == (2, 1)
    assert edited.next_instant == NOW + MINUTE
    hourly = replace(payload, schedule=replace(EVERY_MINUTE, interval_seconds=3600))
    edited = await update(database, hourly, changed_by="bob", now=NOW + HOUR / 120)
    assert (edited.job.version, edited.job.schedule_version) == (3, 2)
    assert edited.next_instant == NOW + HOUR
    versions = await list_versions(database, DEFAULT_TENANT, stored.job.job_id)
    assert [one.job.schedule for one in versions] == [EVERY_MINUTE, EVERY_MINUTE, hourly.schedule]


@pytest.mark.parametrize(
    ("schedule", "first"),
    [
        (EVERY_MINUTE, NOW + HOUR + MINUTE),
        (Schedule(ScheduleType.DELAYED, delay_seconds=60), NOW + HOUR + MINUTE),
        (Schedule(ScheduleType.IMMEDIATE), NOW + HOUR),
        (Schedule(ScheduleType.ONE_TIME, run_at=NOW + MINUTE), NOW + MINUTE),
    ],
)
async def test_a_completed_job_lives_again_by_a_new_schedule(
    database: Database, schedule: Schedule, first: datetime
) -> None:
    stored = await create_job(database, new_job(Schedule(ScheduleType.ONE_TIME, run_at=NOW)))
    await fire_due(database, NOW)
    assert (await get(database, DEFAULT_TENANT, stored.job.job_id)).job.status == "COMPLETED"
    renamed = replace(stored.job, name="other")
    edited = await update(database, renamed, changed_by="bob", now=NOW + HOUR)
    assert edited.job.status is JobState.COMPLETED
    edited = await update(
        database, replace(renamed, schedule=schedule), changed_by="bob", now=NOW + HOUR
    )
    assert (edited.job.status, edited.next_instant) == (JobState.ACTIVE, first)


async def test_limits_are_kept_with_the_job(database: Database) -> None:
    stored = await create_job(database, new_job(concurrency=ConcurrencyLimit(limit=3)))
    key = f"job:{stored.job.job_id}"
    assert [tuple(row) for row in await database.fetch(LIMITS)] == [(key, 3)]
    five = replace(stored.job, concurrency=ConcurrencyLimit(limit=5))
    with pytest.raises(VersionConflict):
        await update(database, five, changed_by="bob", expected_version=7)
    assert [tuple(row) for row in await database.fetch(LIMITS)] == [(key, 3)]
    await update(database, five, changed_by="bob")
    assert [tuple(row) for row in await database.fetch(LIMITS)] == [(key, 5)]
    keyed = ConcurrencyLimit("${payload.user}", 2)
    await update(
        database, replace(five, concurrency=keyed, payload={"user": "u"}), changed_by="bob"
    )
    assert [tuple(row) for row in await database.fetch(LIMITS)] == [(f"key:{DEFAULT_TENANT}:u", 2)]
