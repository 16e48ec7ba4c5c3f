"""Overlap as the server decides it: the rule of the core for every policy, and what becomes of the
executions that a newer instant replaces."""

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from foliot.core.ids import JobId
from foliot.core.model import MisfirePolicy, OverlapPolicy, Schedule, ScheduleType
from foliot.core.schedule.overlap import OverlapDecision, decide_batch
from foliot.store.database import Database
from foliot.store.firing import Fired, JobFire, fire_batch, fire_in
from foliot.store.staging import settle_due, stage_due
from foliot.testing.database import sql
from foliot.testing.rows import NOW, JobRow, make_execution, make_executions, make_job

MINUTE = timedelta(minutes=1)
# What counts as running: all that is live and that this policy does not hold back.
RUNNING = (
    {"status": "RUNNING"},
    {"status": "RETRYING"},
    {"status": "WAITING", "hold": "LIMIT"},
    {"status": "PENDING", "trigger": "AFTER"},
)
LIVE = sql("""
select scheduled_time, status, hold, cancel_requested_at from foliot.executions
 where job_id = $1 order by scheduled_time
""")
SET_POLICY = sql("update foliot.jobs set overlap_policy = $2 where id = $1")
END_ONE = sql("delete from foliot.executions where job_id = $1 and scheduled_time = $2")
LET_GO = sql("""
update foliot.executions set hold = null, status = 'PENDING' where job_id = $1 and hold is not null
""")
ENDED = sql("select id, status, error from foliot.attempts where job_id = $1 order by id")
SKIPPED = sql("""
select from_instant from foliot.skips where job_id = $1 and reason = 'OVERLAP' and count = 1
""")


def every_minute(policy: OverlapPolicy) -> Schedule:
    return Schedule(
        ScheduleType.INTERVAL,
        interval_seconds=60,
        misfire_policy=MisfirePolicy.FIRE_ALL,
        overlap_policy=policy,
    )


async def settle_all(database: Database) -> list[JobFire]:
    due = await stage_due(database, range(64), low=None, high=NOW + MINUTE, limit=1000)
    fires = [settle_due(one, NOW) for one in due]
    return [fire for fire in fires if fire]


async def decisions(database: Database, job_id: JobId, fires: int) -> list[OverlapDecision]:
    """What was decided for each instant, as the rows tell it."""
    live = {row["scheduled_time"]: row["hold"] for row in await database.fetch(LIVE, job_id)}
    skipped = {row["from_instant"] for row in await database.fetch(SKIPPED, job_id)}
    found = []
    for number in range(fires):
        instant = NOW - (fires - 1 - number) * MINUTE
        assert (instant in live) != (instant in skipped)
        found.append(
            OverlapDecision.SKIP
            if instant in skipped
            else OverlapDecision.HOLD
            if live[instant] == "OVERLAP"
            else OverlapDecision.START
        )
    return found


async def test_the_server_decides_as_the_core_does(database: Database) -> None:
    """Every policy, with up to two running, two waiting and four instants at once, in one batch."""
    cases: list[tuple[JobRow, OverlapPolicy, int, int, int]] = []
    for policy, running, waiting, fires in product(OverlapPolicy, range(3), range(3), range(1, 5)):
        first = NOW - (fires - 1) * MINUTE
        job = await make_job(
            database,
            every_minute(policy),
            next_instant=first,
            created_at=first - MINUTE,
        )
        for number in range(running):
            await make_execution(database, job, **RUNNING[(len(cases) + number) % len(RUNNING)])
        for _ in range(waiting):
            await make_execution(database, job, status="WAITING", hold="OVERLAP")
        await make_execution(database, job, status="QUEUED", trigger="MANUAL")
        cases.append((job, policy, running, waiting, fires))

    report = await fire_batch(database, await settle_all(database), now=NOW)

    assert len(report.applied) == len(cases) == 180
    counts = {one.job_id: one for one in report.applied}
    for job, policy, running, waiting, fires in cases:
        expected = [
            OverlapDecision.HOLD if one is OverlapDecision.CANCEL_PREVIOUS else one
            for one in decide_batch(policy, running=running, waiting=waiting, fires=fires)
        ]
        assert await decisions(database, job.job_id, fires) == expected, (policy, running, waiting)
        skips = expected.count(OverlapDecision.SKIP)
        assert counts[job.job_id] == Fired(job.job_id, fires - skips, skips)


async def test_a_newer_instant_replaces_what_waits_and_asks_what_runs_to_stop(
    database: Database,
) -> None:
    job = await make_job(database, every_minute(OverlapPolicy.CANCEL_PREVIOUS))
    await make_execution(database, job, status="RUNNING")
    waiting = await make_execution(database, job, status="WAITING")
    await make_execution(database, job, status="RUNNING", cancel_requested_at=NOW - MINUTE)
    await make_execution(database, job, trigger="MANUAL")
    other = await make_job(database, every_minute(OverlapPolicy.QUEUE_ALL))
    await make_execution(database, other, status="RUNNING")

    await fire_batch(database, await settle_all(database), now=NOW)

    rows = await database.fetch(LIVE, job.job_id)
    assert [(row["status"], row["cancel_requested_at"]) for row in rows] == [
        ("RUNNING", NOW),
        ("RUNNING", NOW - MINUTE),
        ("QUEUED", None),
        ("WAITING", None),
    ]
    (ended,) = await database.fetch(ENDED, job.job_id)
    assert (ended["id"], ended["status"]) == (waiting.execution_id, "CANCELLED")
    assert ended["error"]["message"] == "a newer instant of the job took its place"
    untouched = await database.fetch(LIVE, other.job_id)
    assert [row["cancel_requested_at"] for row in untouched] == [None, None]


async def test_a_replay_cancels_nothing_again(database: Database) -> None:
    """The policy came by an edit after the instant was held: its replay is no replacement."""
    job = await make_job(database, every_minute(OverlapPolicy.QUEUE_ALL))
    await make_execution(database, job, status="RUNNING")
    batch = [replace(one, replaces=True) for one in await settle_all(database)]
    await fire_batch(database, batch, now=NOW)
    await database.execute(sql("update foliot.jobs set overlap_policy = 'CANCEL_PREVIOUS'"))
    report = await fire_batch(database, batch, now=NOW + MINUTE)
    assert report.passed_over == (job.job_id,)
    rows = await database.fetch(LIVE, job.job_id)
    assert [(row["status"], row["cancel_requested_at"]) for row in rows] == [
        ("RUNNING", None),
        ("WAITING", None),
    ]


@pytest.mark.parametrize("policy", [OverlapPolicy.SKIP, OverlapPolicy.QUEUE_ONE])
async def test_schedulers_that_race_do_not_let_two_run(
    database: Database, database_url: str, policy: OverlapPolicy
) -> None:
    """Each fires one instant after the other; together they must not start more than one."""
    jobs = [await make_job(database, every_minute(policy)) for _ in range(5)]

    async def fire_minutes(node: Database) -> None:
        for number in range(6):
            now = NOW + number * MINUTE
            due = await stage_due(node, range(64), low=None, high=now + MINUTE, limit=100)
            fires = [settle_due(one, now) for one in due]
            await fire_batch(node, [fire for fire in fires if fire], take=number % 2 == 0, now=now)

    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(Database(database_url)) for _ in range(8)]
        await asyncio.gather(*map(fire_minutes, nodes))
    expected = {
        OverlapPolicy.SKIP: [("QUEUED", None)],
        OverlapPolicy.QUEUE_ONE: [("QUEUED", None), ("WAITING", "OVERLAP")],
    }
    for job in jobs:
        rows = await database.fetch(LIVE, job.job_id)
        assert [(row["status"], row["hold"]) for row in rows] == expected[policy]


async def test_a_long_backlog_costs_a_fire_nothing(database: Database) -> None:
    """Whether a job is busy is one step into an index, not a count of all that wait."""
    job = await make_job(database, every_minute(OverlapPolicy.QUEUE_ALL))
    await make_executions(database, job, 5000, status="WAITING")
    reads = sql(
        "select idx_tup_fetch + seq_tup_read from pg_stat_xact_user_tables"
        " where relname = 'executions'"
    )
    batch = await settle_all(database)
    async with database.transaction() as session:
        await fire_in(session, batch, take=False, now=NOW)
        assert await session.fetch_value(reads) < 50


async def test_whether_a_job_is_busy_is_told_rightly_through_every_change(
    database: Database,
) -> None:
    """The one row that a fire remembers stands for all of the job's, or nothing is remembered."""
    chance = random.Random(20_270_301)
    job = await make_job(
        database, every_minute(OverlapPolicy.SKIP), next_instant=NOW, created_at=NOW - MINUTE
    )
    seen = set()
    for number in range(120):
        now = NOW + number * MINUTE
        policy = chance.choice([OverlapPolicy.SKIP, OverlapPolicy.SKIP, *OverlapPolicy])
        await database.execute(SET_POLICY, job.job_id, policy)
        for row in await database.fetch(LIVE, job.job_id):
            if chance.random() < 0.4:
                await database.execute(END_ONE, job.job_id, row["scheduled_time"])
        if chance.random() < 0.2:
            await database.execute(LET_GO, job.job_id)
        before = {row["scheduled_time"]: row for row in await database.fetch(LIVE, job.job_id)}
        waiting = sum(row["hold"] == "OVERLAP" for row in before.values())
        running = len(before) - waiting
        due = await stage_due(database, range(64), low=None, high=now + MINUTE / 2, limit=10)
        fires = [fire for fire in (settle_due(one, now) for one in due) if fire]
        await fire_batch(database, fires, now=now)
        rows = await database.fetch(LIVE, job.job_id)
        after = {row["scheduled_time"]: row["hold"] for row in rows}
        decision = decide_batch(policy, running=running, waiting=waiting, fires=1)[0]
        if decision is OverlapDecision.SKIP:
            assert now not in after
        else:
            assert (after[now] == "OVERLAP") == (decision is not OverlapDecision.START)
        seen.add((policy, decision))
    assert len(seen) >= 9
