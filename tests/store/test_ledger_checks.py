"""The ledger over real rows: what the store does holds, and what is done to the rows is named."""

from dataclasses import replace
from datetime import datetime, timedelta

from foliot.core.model import Job, OverlapPolicy, Schedule, ScheduleType
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.ledger import Problem, ProblemKind
from foliot.store.calendars import put_calendar
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.jobs import delete, pause, resume, update
from foliot.testing.database import sql
from foliot.testing.jobs import EVERY_MINUTE, create_job, fire_due, new_job
from foliot.testing.ledger import check_one, counts, end_all
from foliot.testing.rows import DEFAULT_TENANT, NOW

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TICK = timedelta(microseconds=1)
AGAIN = sql("""
with gone as (delete from foliot.executions e where e.job_id = $1 returning e as row),
     over as (insert into foliot.attempts
              select a.* from gone g cross join lateral foliot.as_attempt(
                g.row, 'SUCCEEDED', true, $2, null, null, false, null, null) a)
select (g.row).* from gone g
""")
FORGET_LIVE = sql("delete from foliot.executions where job_id = $1 and scheduled_time = $2")
FORGET_ENDED = sql("delete from foliot.attempts where job_id = $1 and scheduled_time = $2")
FORGET_SKIPS = sql("delete from foliot.skips where job_id = $1")


async def problem_of(database: Database, now: datetime) -> Problem:
    (problem,) = (await check_one(database, now)).problems
    return problem


async def job_with_three_fires(database: Database) -> Job:
    """At one, two and three minutes; the first two have ended."""
    job = (await create_job(database)).job
    for n in (1, 2):
        await fire_due(database, NOW + n * MINUTE)
    await end_all(database, job.job_id, NOW + 2 * MINUTE)
    await fire_due(database, NOW + 3 * MINUTE)
    return job


async def test_live_and_ended_executions_and_skips_are_all_outcomes(database: Database) -> None:
    job = await job_with_three_fires(database)
    await fire_due(database, NOW + 9 * MINUTE)
    found = await check_one(database, NOW + 10 * MINUTE - MINUTE / 2)
    assert (found.job_id, found.name, found.problems) == (job.job_id, job.name, ())
    assert counts(found) == (9, 4, 5, 0)


async def test_a_job_that_was_only_triggered_expects_nothing(database: Database) -> None:
    job = (await create_job(database, new_job(Schedule(ScheduleType.MANUAL)))).job
    request = Request(DEFAULT_TENANT, "test", "one", NOW)
    await enqueue(database, request, [Wanted(job.job_id)], NOW)
    await end_all(database, job.job_id, NOW)
    await enqueue(database, replace(request, request_id="two"), [Wanted(job.job_id)], NOW)
    found = await check_one(database, NOW + HOUR)
    assert (counts(found), found.problems) == ((0, 0, 0, 0), ())


async def test_a_row_that_was_removed_is_named(database: Database) -> None:
    job = await job_with_three_fires(database)
    later = NOW + 3 * MINUTE + MINUTE / 2
    await database.execute(FORGET_LIVE, job.job_id, NOW + 3 * MINUTE)
    problem = await problem_of(database, later)
    assert (problem.kind, problem.from_, problem.to, problem.count) == (
        ProblemKind.MISSING,
        NOW + 3 * MINUTE,
        NOW + 3 * MINUTE,
        1,
    )
    await database.execute(FORGET_ENDED, job.job_id, NOW + 2 * MINUTE)
    problem = await problem_of(database, later)
    assert (problem.from_, problem.to, problem.count) == (NOW + 2 * MINUTE, NOW + 3 * MINUTE, 2)


async def test_a_skip_record_that_was_removed_or_changed_is_named(database: Database) -> None:
    job = (await create_job(database)).job
    await fire_due(database, NOW + 5 * MINUTE)
    now = NOW + 5 * MINUTE + MINUTE / 2
    assert counts(await check_one(database, now)) == (5, 1, 4, 0)
    await database.execute(sql("update foliot.skips set count = 3"))
    problem = await problem_of(database, now)
    assert problem.kind is ProblemKind.MISCOUNTED
    assert problem.why == "the record says 3 were skipped; the schedule has 4 there"
    await database.execute(FORGET_SKIPS, job.job_id)
    problem = await problem_of(database, now)
    assert (problem.kind, problem.from_, problem.count) == (
        ProblemKind.MISSING,
        NOW + MINUTE,
        4,
    )


async def test_a_second_outcome_is_named(database: Database) -> None:
    job = await job_with_three_fires(database)
    now = NOW + 3 * MINUTE + MINUTE / 2
    await database.execute(
        sql(
            "insert into foliot.skips (job_id, tenant_id, schedule_version, from_instant,"
            " to_instant, count, reason, recorded_at) values ($1, $2, 1, $3, $3, 1, 'MISFIRE', $3)"
        ),
        job.job_id,
        DEFAULT_TENANT,
        NOW + 2 * MINUTE,
    )
    problem = await problem_of(database, now)
    assert (problem.kind, problem.from_) == (ProblemKind.DOUBLED, NOW + 2 * MINUTE)
    await database.execute(FORGET_SKIPS, job.job_id)
    await database.execute(
        sql(
            "insert into foliot.attempts"
            " select (jsonb_populate_record(a, '{\"fence\": 9}')).* from foliot.attempts a"
            " where scheduled_time = $1"
        ),
        NOW + MINUTE,
    )
    problem = await problem_of(database, now)
    assert (problem.kind, problem.from_) == (ProblemKind.DOUBLED, NOW + MINUTE)


async def test_an_execution_that_has_ended_and_is_live_again_is_named(database: Database) -> None:
    job = (await create_job(database)).job
    await fire_due(database, NOW + MINUTE)
    (row,) = await database.fetch(AGAIN, job.job_id, NOW + MINUTE)
    columns = dict(row)
    names = ", ".join(columns)
    places = ", ".join(f"${n}" for n in range(1, len(columns) + 1))
    await database.execute(
        sql(f"insert into foliot.executions ({names}) values ({places})"),  # noqa: S608
        *columns.values(),
    )
    problem = await problem_of(database, NOW + MINUTE + MINUTE / 2)
    assert (problem.kind, problem.from_) == (ProblemKind.DOUBLED, NOW + MINUTE)


async def test_an_execution_that_no_schedule_had_is_named(database: Database) -> None:
    job = await job_with_three_fires(database)
    move = sql("update foliot.executions set scheduled_time = scheduled_time - interval '7 s'")
    await database.execute(move)
    found = await check_one(database, NOW + 3 * MINUTE + MINUTE / 2)
    assert found.found == {ProblemKind.MISSING: 1, ProblemKind.UNEXPECTED: 1}
    assert found.problems[0].why == (
        "an execution of version 1: the schedule of version 1 has no such instant"
    )
    assert found.job_id == job.job_id


async def test_each_stretch_is_recounted_by_its_own_schedule(database: Database) -> None:
    job = (await create_job(database)).job
    await fire_due(database, NOW + MINUTE)
    faster = replace(job, schedule=replace(EVERY_MINUTE, interval_seconds=20))
    await update(database, faster, changed_by="test", now=NOW + 3 * MINUTE)
    await fire_due(database, NOW + 4 * MINUTE)
    await delete(database, job.tenant_id, job.job_id, changed_by="test", now=NOW + 5 * MINUTE)
    found = await check_one(database, NOW + HOUR)
    assert found.problems == ()
    assert found.expected == found.fired + found.skipped == 3 + 6
    assert (await check_one(database, NOW + HOUR, job_id=job.job_id)).expected == 9


async def test_a_single_instant_that_lies_before_what_is_settled_is_not_expected(
    database: Database,
) -> None:
    job = await job_with_three_fires(database)
    past = Schedule(
        ScheduleType.ONE_TIME,
        run_at=NOW + 2 * MINUTE + MINUTE / 2,
        overlap_policy=OverlapPolicy.ALLOW,
    )
    between = replace(past, run_at=NOW + 3 * MINUTE + MINUTE / 4)
    for schedule in (past, between):
        now = NOW + 3 * MINUTE + MINUTE / 2
        await update(database, replace(job, schedule=schedule), changed_by="test", now=now)
        await fire_due(database, now)
    found = await check_one(database, NOW + HOUR)
    assert (counts(found), found.problems) == ((4, 4, 0, 0), ())


async def test_a_calendar_is_the_one_by_which_the_job_was_planned(database: Database) -> None:
    daily = Schedule(
        ScheduleType.CRON,
        cron_expression="0 9 * * *",
        calendar="closed",
        overlap_policy=OverlapPolicy.ALLOW,
    )
    tuesdays, fridays = (Calendar("closed", excluded_weekdays=frozenset({day})) for day in (2, 5))
    await put_calendar(database, DEFAULT_TENANT, tuesdays, changed_by="carol", now=NOW)
    job = (await create_job(database, new_job(daily))).job
    nine = NOW.replace(hour=9)  # on a Monday
    for day in (1, 2):
        await fire_due(database, nine + day * DAY)
    wednesday = nine + 2 * DAY + HOUR
    await put_calendar(database, DEFAULT_TENANT, fridays, changed_by="carol", now=wednesday)
    for day in (3, 4, 5, 6, 7, 8):
        await fire_due(database, nine + day * DAY)
    found = await check_one(database, nine + 8 * DAY + HOUR)
    assert (counts(found), found.problems) == ((8, 6, 2, 0), ())
    kept = await database.fetch(
        sql("select version, calendar_version from foliot.job_versions where job_id = $1"),
        job.job_id,
    )
    assert [tuple(row) for row in kept] == [(1, 1), (2, 2)]
    await database.execute(sql("update foliot.skips set reason = 'DST_GAP' where count = 1"))
    found = await check_one(database, nine + 8 * DAY + HOUR)
    assert found.problems[0].why == "the record says DST_GAP for 1; that is so for 0"


async def test_the_instants_of_a_paused_job_are_due_and_not_late(database: Database) -> None:
    job = await job_with_three_fires(database)
    ids = (job.tenant_id, job.job_id)
    await pause(database, *ids, changed_by="test", now=NOW + 4 * MINUTE)
    found = await check_one(database, NOW + DAY)
    assert (counts(found), found.problems) == ((4, 4, 0, 24 * 60 - 4 - 1), ())
    await resume(database, *ids, changed_by="test", now=NOW + DAY)
    found = await check_one(database, NOW + DAY + TICK)
    assert (counts(found), found.problems) == ((24 * 60, 5, 24 * 60 - 5, 0), ())


async def test_an_instant_that_nobody_settles_is_due_and_after_a_minute_overdue(
    database: Database,
) -> None:
    jittered = replace(EVERY_MINUTE, interval_seconds=3600, jitter_seconds=600)
    stored = await create_job(database, new_job(jittered))
    assert stored.next_run_at is not None
    patience = stored.next_run_at + MINUTE
    found = await check_one(database, patience)
    assert (counts(found), found.problems) == ((0, 0, 0, 1), ())
    problem = await problem_of(database, patience + TICK)
    assert (problem.kind, problem.from_, problem.count) == (ProblemKind.OVERDUE, NOW + HOUR, 1)
