"""Whatever is done to a job in whichever order, its ledger holds after each step; and if one of its
rows is removed, the instants of that row are named."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.core.errors import IllegalTransition, InvalidSchedule
from foliot.core.ids import JobId
from foliot.core.model import (
    CalendarRule,
    HandlerTarget,
    Job,
    MisfirePolicy,
    OverlapPolicy,
    Schedule,
    ScheduleType,
)
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.ledger import ProblemKind
from foliot.store.calendars import put_calendar
from foliot.store.database import Database
from foliot.store.firing import fire_batch
from foliot.store.jobs import create, delete, pause, resume, update
from foliot.store.staging import settle_due, stage_due
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.ledger import check_one, end_all
from foliot.testing.rows import DEFAULT_TENANT, NOW

TICK = timedelta(microseconds=1)
REMOVE = sql("""
with found as (
  select 'executions' as place, e.id, e.scheduled_time as low, e.scheduled_time as high, 1 as count
    from foliot.executions e where e.job_id = $1
   union all
  select 'attempts', a.id, a.scheduled_time, a.scheduled_time, 1
    from foliot.attempts a where a.job_id = $1
   union all
  select 'skips', null, s.from_instant, s.to_instant, s.count
    from foliot.skips s where s.job_id = $1),
chosen as (select f.* from found f order by md5(f.low::text || $2) limit 1),
live as (delete from foliot.executions e using chosen c
          where c.place = 'executions' and e.id = c.id),
ended as (delete from foliot.attempts a using chosen c where c.place = 'attempts' and a.id = c.id),
skipped as (delete from foliot.skips s using chosen c
             where c.place = 'skips' and s.job_id = $1 and s.from_instant = c.low)
select low, high, count from chosen
""")
CALENDARS = [
    Calendar("closed"),
    Calendar("closed", excluded_dates=frozenset({date(2027, 3, 2), date(2027, 3, 4)})),
    *(Calendar("closed", rule, excluded_weekdays=frozenset({3, 6, 7})) for rule in CalendarRule),
]

moments = st.integers(-60, 60 * 24 * 6).map(lambda minutes: NOW + timedelta(minutes=minutes))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    common = Schedule(
        draw(st.sampled_from([ScheduleType.CRON, ScheduleType.INTERVAL, *ScheduleType])),
        misfire_policy=draw(st.sampled_from(MisfirePolicy)),
        misfire_max_runs=draw(st.integers(1, 3)),
        overlap_policy=draw(st.sampled_from(OverlapPolicy)),
    )
    recurring = replace(
        common,
        max_runs=draw(st.sampled_from([None, None, 2, 6])),
        calendar=draw(st.sampled_from([None, "closed"])),
        jitter_seconds=draw(st.sampled_from([0.0, 0.0, 5.0])),
        end_at=draw(st.none() | st.just(NOW + timedelta(days=5))),
    )
    match common.type:
        case ScheduleType.CRON:
            crons = st.sampled_from(["*/20 * * * *", "0 9 * * *", "H 3 * * *"])
            return replace(recurring, cron_expression=draw(crons))
        case ScheduleType.INTERVAL:
            return replace(recurring, interval_seconds=draw(st.sampled_from([7.0, 4000.0])))
        case ScheduleType.ONE_TIME:
            return replace(common, run_at=draw(moments))
        case ScheduleType.DELAYED:
            return replace(common, delay_seconds=draw(st.sampled_from([0.5, 300.0])))
        case ScheduleType.IMMEDIATE:
            return common
        case ScheduleType.MANUAL | ScheduleType.AFTER:
            return replace(common, type=ScheduleType.MANUAL)


seconds = st.sampled_from([0, 1, 20, 70, 4000, 50_000])
steps = st.one_of(
    st.sampled_from(["fire", "fire", "fire", "pause", "resume", "payload"]),
    schedules(),
    st.sampled_from(CALENDARS),
)


@pytest.fixture(scope="module")
def ledger_url(server: DatabaseFactory) -> Iterator[str]:
    with asyncio.Runner() as runner:
        yield runner.run(server.create())


async def do(database: Database, job: Job, step: str | Schedule | Calendar, now: datetime) -> Job:
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
            with suppress(InvalidSchedule):
                await update(database, replace(job, schedule=step), now=now, changed_by="test")
                job = replace(job, schedule=step)
        case Calendar():
            await put_calendar(database, DEFAULT_TENANT, step, now=now, changed_by="test")
        case _:
            job = replace(job, payload=str(now))
            await update(database, job, now=now, changed_by="test")
    return job


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    first=schedules(),
    steps=st.lists(st.tuples(seconds, steps, st.booleans()), max_size=10),
    which=st.integers(0, 1000),
)
def test_the_ledger_holds_after_each_step(
    ledger_url: str,
    first: Schedule,
    steps: list[tuple[int, str | Schedule | Calendar, bool]],
    which: int,
) -> None:
    async def run() -> None:
        async with Database(ledger_url) as database:
            job_id = JobId(uuid4())
            job = Job(job_id, DEFAULT_TENANT, str(job_id), first, HandlerTarget("work"))
            now = NOW
            await put_calendar(database, DEFAULT_TENANT, CALENDARS[0], now=now, changed_by="test")
            await create(database, job, changed_by="test", now=now)
            for passed, step, finishes in steps:
                now += timedelta(seconds=passed)
                if finishes:
                    await end_all(database, job_id, now)
                job = await do(database, job, step, now)
                found = await check_one(database, now + TICK, job_id=job_id)
                assert found.found.keys() <= {ProblemKind.OVERDUE}, found.problems
            now += timedelta(seconds=50)
            await delete(database, job.tenant_id, job_id, changed_by="test", now=now)
            found = await check_one(database, now + TICK, job_id=job_id)
            assert (found.problems, found.due) == ((), 0)
            assert found.expected == found.fired + found.skipped
            row = await database.fetch_row(REMOVE, job_id, str(which))
            if row is not None:
                (problem,) = (await check_one(database, now + TICK, job_id=job_id)).problems
                named = (problem.kind, problem.from_, problem.to, problem.count)
                assert named == (ProblemKind.MISSING, *row)

    asyncio.run(run())
