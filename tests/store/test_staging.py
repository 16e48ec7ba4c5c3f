"""Staging: which jobs a scheduler sees, and with what."""

from dataclasses import replace
from datetime import date, datetime, timedelta

from foliot.core.ids import shard_of
from foliot.core.model import CalendarRule, Schedule, ScheduleType
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.jitter import available_at
from foliot.store.database import Database
from foliot.store.definitions import calendar_as_json
from foliot.store.firing import fire_batch
from foliot.store.staging import DueJob, settle_due, stage_due
from foliot.testing.database import sql
from foliot.testing.rows import DEFAULT_TENANT, HOURLY, NOW, insert_rows, make_job

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
ALL = range(64)


async def stage(
    database: Database, low: datetime | None = None, high: datetime = NOW + HOUR, limit: int = 100
) -> list[DueJob]:
    return await stage_due(database, ALL, low=low, high=high, limit=limit)


async def test_jobs_come_soonest_first_from_low_and_before_high(database: Database) -> None:
    instants = [NOW + number * SECOND for number in (3, 1, 4, 0, 2)]
    for instant in instants:
        await make_job(database, next_instant=instant)
    staged = await stage(database, NOW + SECOND, NOW + 4 * SECOND)
    assert [one.next_run_at for one in staged] == [NOW + number * SECOND for number in (1, 2, 3)]
    first = await stage(database, limit=2)
    assert [one.expected for one in first] == [NOW, NOW + SECOND]


async def test_only_active_jobs_of_the_shards_are_staged(database: Database) -> None:
    jobs = [await make_job(database) for _ in range(8)]
    for status in ("PAUSED", "COMPLETED", "DELETED"):
        await make_job(database, status=status)
    await make_job(database, next_instant=None)
    wanted = {shard_of(job.job_id) for job in jobs[:3]}
    staged = await stage_due(database, wanted, low=None, high=NOW + HOUR, limit=100)
    of_shards = {job.job_id for job in jobs if shard_of(job.job_id) in wanted}
    assert {one.job_id for one in staged} == of_shards
    assert {one.job_id for one in await stage(database)} == {job.job_id for job in jobs}


async def test_a_staged_job_has_what_it_takes_to_settle_it(database: Database) -> None:
    holidays = Calendar(
        "holidays",
        CalendarRule.NEXT_BUSINESS_DAY,
        "Europe/Zurich",
        frozenset({date(2027, 1, 1)}),
        frozenset({6, 7}),
        frozenset({(12, 25)}),
    )
    calendar = {"tenant_id": DEFAULT_TENANT, "name": "holidays", "version": 1, "updated_at": NOW}
    await insert_rows(
        database, "calendars", [calendar | {"definition": calendar_as_json(holidays)}]
    )
    schedule = Schedule(
        ScheduleType.CRON,
        cron_expression="0 12 * * *",
        timezone="Europe/Zurich",
        calendar="holidays",
        end_at=NOW + 48 * HOUR,
        max_runs=7,
        jitter_seconds=30.5,
    )
    job = await make_job(
        database, schedule, fired_count=4, queue="reports", next_run_at=NOW + 7 * SECOND
    )
    (staged,) = await stage(database)
    assert (staged.job_id, staged.tenant_id) == (job.job_id, DEFAULT_TENANT)
    assert staged.queue == "reports"
    assert (staged.expected, staged.next_run_at) == (NOW, NOW + 7 * SECOND)
    assert staged.schedule == schedule
    assert staged.facts.calendar == holidays
    assert (staged.facts.fired_count, staged.facts.created_at) == (4, NOW - HOUR)
    assert staged.facts.runs_left(schedule) == 3


async def test_the_schedule_is_that_of_the_version_in_force(database: Database) -> None:
    job = await make_job(database)
    await database.execute(
        sql(
            "insert into foliot.job_versions select job_id, tenant_id, 2, 2, status,"
            " jsonb_set(definition, '{schedule,interval_seconds}', '60')"
            " || jsonb_build_object('counted_from', '2027-03-01T12:00:00+00:00'),"
            " payload, changed_by, note, valid_from from foliot.job_versions"
        )
    )
    await database.execute(sql("update foliot.jobs set version = 2, schedule_version = 2"))
    (staged,) = await stage(database)
    assert (staged.job_id, staged.schedule_version) == (job.job_id, 2)
    assert staged.schedule.interval_seconds == 60
    assert staged.facts.created_at == NOW


async def test_jitter_moves_when_a_job_is_fired_and_when_its_execution_may_start(
    database: Database,
) -> None:
    schedule = replace(HOURLY, jitter_seconds=600)
    job = await make_job(database, schedule)
    (staged,) = await stage(database)
    fire = settle_due(staged, NOW)
    assert fire is not None
    assert fire.next_instant == NOW + HOUR
    assert fire.next_run_at == available_at(schedule, job.job_id, NOW + HOUR, NOW + 2 * HOUR)
    await fire_batch(database, [fire])
    (again,) = await stage(database, high=NOW + 2 * HOUR)
    later = settle_due(again, again.next_run_at)
    assert later is not None
    assert [one.available_at for one in later.fires] == [again.next_run_at]


async def test_a_job_that_is_not_due_has_nothing_to_settle(database: Database) -> None:
    await make_job(database)
    (staged,) = await stage(database)
    assert settle_due(staged, NOW - SECOND) is None
