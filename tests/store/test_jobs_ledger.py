"""The ledger: whatever is done to a job and in whichever order, every instant of every version in
force has exactly one outcome, an execution or a skip."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.core.errors import IllegalTransition
from foliot.core.ids import JobId
from foliot.core.model import (
    HandlerTarget,
    Job,
    MisfirePolicy,
    OverlapPolicy,
    Schedule,
    ScheduleType,
)
from foliot.core.schedule.occurrences import ScheduleFacts, occurrences
from foliot.store.database import Database
from foliot.store.firing import fire_batch
from foliot.store.job_rows import get, list_versions
from foliot.store.jobs import create, delete, pause, resume, update
from foliot.store.staging import settle_due, stage_due
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.ledger import check_one, end_all
from foliot.testing.rows import DEFAULT_TENANT, NOW

TICK = timedelta(microseconds=1)
FIRED = sql("""
select scheduled_time, job_version from foliot.executions where job_id = $1
union all
select scheduled_time, job_version from foliot.attempts where job_id = $1
""")
SKIPPED = sql("""
select from_instant, to_instant, count, schedule_version from foliot.skips where job_id = $1
""")


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    common = Schedule(
        ScheduleType.INTERVAL,
        interval_seconds=draw(st.sampled_from([7.0, 45.0])),
        misfire_policy=draw(st.sampled_from(MisfirePolicy)),
        misfire_max_runs=draw(st.integers(1, 3)),
        overlap_policy=draw(st.sampled_from(OverlapPolicy)),
        jitter_seconds=draw(st.sampled_from([0.0, 0.0, 5.0])),
        max_runs=draw(st.sampled_from([None, None, 2, 6])),
    )
    if draw(st.booleans()):
        return common
    return replace(
        common, type=ScheduleType.CRON, interval_seconds=None, cron_expression="*/20 * * * * *"
    )


seconds = st.sampled_from([0, 1, 20, 33, 70, 200])
steps = st.one_of(
    st.sampled_from(["fire", "fire", "fire", "pause", "resume", "payload"]), schedules()
)


@pytest.fixture(scope="module")
def ledger_url(server: DatabaseFactory) -> Iterator[str]:
    with asyncio.Runner() as runner:
        yield runner.run(server.create())


async def do(database: Database, job: Job, step: str | Schedule, now: datetime) -> Job:
    ids = (job.tenant_id, job.job_id)
    match step:
        case "fire":
            due = await stage_due(database, range(64), low=None, high=now + TICK, limit=100)
            fires = [settle_due(one, now) for one in due if one.job_id == job.job_id]
            await fire_batch(database, [one for one in fires if one], now=now)
        case "pause" | "resume":
            change = pause if step == "pause" else resume
            with suppress(IllegalTransition):
                await change(database, *ids, now=now, changed_by="test")
        case Schedule():
            job = replace(job, schedule=step)
            await update(database, job, now=now, changed_by="test")
        case _:
            job = replace(job, payload=str(now))
            await update(database, job, now=now, changed_by="test")
    return job


def instants_between(
    schedule: Schedule, facts: ScheduleFacts, after: datetime, until: datetime
) -> list[datetime]:
    """Every one, one by one, whatever `max_runs` says."""
    found = []
    for one in occurrences(replace(schedule, max_runs=None), facts, after):
        if one.instant > until:
            break
        found.append(one.instant)
    return found


async def check_ledger(database: Database, job: Job, counted_from: list[datetime]) -> None:
    versions = await list_versions(database, job.tenant_id, job.job_id)
    schedule_versions = {one.job.version: one.job.schedule_version for one in versions}
    fired = await database.fetch(FIRED, job.job_id)
    when_fired = sorted(row["scheduled_time"] for row in fired)
    settled: Counter[tuple[int, datetime]] = Counter(
        (schedule_versions[row["job_version"]], row["scheduled_time"]) for row in fired
    )
    firsts = {one.job.schedule_version: one for one in reversed(versions)}
    expected = set()
    for number, first in sorted(firsts.items()):
        schedule = first.job.schedule
        facts = ScheduleFacts(job.job_id, counted_from[number - 1])
        following = firsts.get(number + 1)
        until = following.valid_from if following else versions[-1].valid_from
        for row in await database.fetch(SKIPPED, job.job_id):
            if row["schedule_version"] == number:
                before = row["from_instant"] - TICK
                skipped = instants_between(schedule, facts, before, row["to_instant"])
                assert len(skipped) == row["count"]
                settled.update((number, instant) for instant in skipped)
        expected |= {
            (number, instant)
            for instant in instants_between(schedule, facts, first.valid_from, until)
            if schedule.max_runs is None
            or sum(at < instant for at in when_fired) < schedule.max_runs
        }
    assert settled == Counter(expected)
    assert len({instant for _, instant in settled}) == len(settled)
    told = await check_one(database, versions[-1].valid_from + TICK, job_id=job.job_id)
    assert (told.expected, told.fired, told.problems) == (len(expected), len(when_fired), ())


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(first=schedules(), steps=st.lists(st.tuples(seconds, steps, st.booleans()), max_size=12))
def test_every_instant_of_every_version_has_one_outcome(
    ledger_url: str, first: Schedule, steps: list[tuple[int, str | Schedule, bool]]
) -> None:
    async def run() -> None:
        async with Database(ledger_url) as database:
            job_id = JobId(uuid4())
            job = Job(job_id, DEFAULT_TENANT, str(job_id), first, HandlerTarget("work"))
            now = NOW
            stored = await create(database, job, changed_by="test", now=now)
            counted_from = [stored.counted_from]
            for passed, step, finishes in steps:
                now += timedelta(seconds=passed)
                if finishes:
                    await end_all(database, job_id, now)
                job = await do(database, job, step, now)
                stored = await get(database, job.tenant_id, job_id, now)
                if stored.job.schedule_version > len(counted_from):
                    counted_from.append(stored.counted_from)
            now += timedelta(seconds=50)
            await delete(database, job.tenant_id, job_id, changed_by="test", now=now)
            await check_ledger(database, job, counted_from)

    asyncio.run(run())
