"""Firing under real concurrency: each instant once, all of a job or nothing of it, and one bad job
keeps nobody else waiting."""

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from foliot.core.ids import JobId, scheduled_execution
from foliot.core.model import MisfirePolicy, OverlapPolicy, Schedule, ScheduleType, SkipReason
from foliot.core.schedule.timeline import Skip
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseError, StatementFailed, TransactionConflict
from foliot.store.firing import Fire, Fired, JobFire, fire_batch, fire_in
from foliot.store.staging import settle_due, stage_due
from foliot.testing.database import sql
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import NOW, make_execution, make_job

SECOND = timedelta(seconds=1)
CATCH_UP = Schedule(
    ScheduleType.INTERVAL,
    interval_seconds=60,
    misfire_policy=MisfirePolicy.FIRE_ALL,
    misfire_max_runs=3,
    overlap_policy=OverlapPolicy.ALLOW,
)
EXECUTIONS = sql("select * from foliot.executions where job_id = $1 order by scheduled_time, id")
SKIPS = sql("select * from foliot.skips where job_id = $1 order by from_instant")
JOB = sql("select * from foliot.jobs where id = $1")
SETTLED = sql(
    "select (select count(*) from foliot.executions), (select count(*) from foliot.skips),"
    " (select sum(fired_count) from foliot.jobs)"
)


async def settled(database: Database, now: datetime = NOW) -> list[JobFire]:
    """All that is due, as a scheduler would send it."""
    due = await stage_due(database, range(64), low=None, high=now + SECOND, limit=1000)
    fires = [settle_due(one, now) for one in due]
    return [fire for fire in fires if fire]


async def the_only(database: Database, now: datetime = NOW) -> JobFire:
    (fire,) = await settled(database, now)
    return fire


async def all_settled(database: Database) -> tuple[int, ...]:
    row = await database.fetch_row(SETTLED)
    assert row is not None
    return tuple(row)


async def job_row(database: Database, job_id: JobId) -> dict[str, Any]:
    row = await database.fetch_row(JOB, job_id)
    assert row is not None
    return dict(row)


async def test_a_due_job_gets_its_execution_and_its_next_instant(database: Database) -> None:
    job = await make_job(database, tags=["daily"], notify=True, start_deadline_seconds=90.5)
    report = await fire_batch(database, await settled(database), now=NOW + SECOND)
    assert report.applied == (Fired(job.job_id, 1, 0),)
    (made,) = await database.fetch(EXECUTIONS, job.job_id)
    assert (made["status"], made["trigger"], made["hold"]) == ("QUEUED", "SCHEDULE", None)
    assert (made["scheduled_time"], made["available_at"]) == (NOW, NOW)
    assert (made["queued_at"], made["created_at"]) == (NOW + SECOND, NOW + SECOND)
    assert made["start_by"] == NOW + timedelta(seconds=90.5)
    assert (made["job_name"], made["tags"], made["notify"]) == (job.name, ["daily"], True)
    assert (made["attempt_number"], made["fence"]) == (0, 0)
    assert made["rank"] is not None
    row = await job_row(database, job.job_id)
    assert row["next_instant"] == row["next_run_at"] == NOW + timedelta(hours=1)
    assert (row["last_instant"], row["fired_count"], row["status"]) == (NOW, 1, "ACTIVE")


async def test_eight_schedulers_fire_each_instant_once(
    database: Database, database_url: str
) -> None:
    """Three instants for each job, and again a round later; whoever is second changes nothing."""
    created = NOW - timedelta(days=1)
    for _ in range(20):
        await make_job(database, CATCH_UP, created_at=created)
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(Database(database_url)) for _ in range(8)]
        for now in (NOW + 10 * timedelta(minutes=1), NOW + 20 * timedelta(minutes=1)):
            batch = await settled(database, now)
            takes = [node % 2 == 1 for node in range(8)]
            reports = await asyncio.gather(
                *(
                    fire_batch(node, batch, take=take)
                    for node, take in zip(nodes, takes, strict=True)
                )
            )
            applied = [one.job_id for report in reports for one in report.applied]
            assert sorted(applied) == sorted(one.job_id for one in batch)
            assert all(len(report.applied + report.passed_over) == 20 for report in reports)
    executions, skips, fired = await all_settled(database)
    assert (executions, skips, fired) == (20 * 6, 20 * 2, 20 * 6)


@pytest.mark.parametrize(
    "change",
    [
        "schedule_version = 2",
        "status = 'PAUSED'",
        "status = 'DELETED'",
        "next_instant = next_instant + interval '1 us', next_run_at = next_run_at",
        "queue = 'other'",
    ],
)
async def test_a_job_that_is_no_longer_as_seen_fires_nothing(
    database: Database, change: str
) -> None:
    job = await make_job(database)
    batch = await settled(database)
    await database.execute(sql(f"update foliot.jobs set {change}"))  # noqa: S608 - the table above
    before = await job_row(database, job.job_id)
    for take in (False, True):
        report = await fire_batch(database, batch, take=take)
        assert (report.applied, report.passed_over) == ((), (job.job_id,))
    assert await all_settled(database) == (0, 0, 0)
    assert await job_row(database, job.job_id) == before


@pytest.mark.parametrize("finished", [False, True])
async def test_a_replay_after_an_unknown_commit_changes_nothing(
    database: Database, database_url: str, finished: bool
) -> None:
    await make_job(database, created_at=NOW - timedelta(days=1))
    warm = await the_only(database)
    await fire_batch(database, [warm])
    job = await make_job(database, CATCH_UP, created_at=NOW - timedelta(days=1))
    batch = await settled(database, NOW + timedelta(minutes=5))
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        # Again and to no effect, so that the statement is prepared there.
        await fire_batch(far, [warm])
        proxy.cut_at(job.job_id.bytes, deliver=True)
        with pytest.raises(CommitUnknown):
            await fire_batch(far, batch)
        await _until(database, "select count(*) = 3 from foliot.executions where job_id = $1", job)
        if finished:
            await database.execute(sql("delete from foliot.executions"))
        before = await all_settled(database), await job_row(database, job.job_id)
        report = await fire_batch(far, batch)
    assert report.passed_over == (job.job_id,)
    assert (await all_settled(database), await job_row(database, job.job_id)) == before


async def _until(database: Database, question: str, *arguments: Any) -> None:  # noqa: ANN401
    """Ask until the answer is yes; the server answers in its own time, for at most 5 s."""
    ids = [getattr(argument, "job_id", argument) for argument in arguments]
    async with asyncio.timeout(5):
        while not await database.fetch_value(sql(question), *ids):
            pass


@pytest.mark.parametrize("interval_seconds", [0.1, 0.001])
async def test_instants_within_a_second_and_a_millisecond_do_not_collide(
    database: Database, interval_seconds: float
) -> None:
    fast = replace(CATCH_UP, interval_seconds=interval_seconds, misfire_max_runs=100)
    jobs = [await make_job(database, fast) for _ in range(3)]
    await fire_batch(
        database, await settled(database, NOW + 99 * timedelta(seconds=interval_seconds))
    )
    for job in jobs:
        instants = [row["scheduled_time"] for row in await database.fetch(EXECUTIONS, job.job_id)]
        step = timedelta(seconds=interval_seconds)
        assert instants == [NOW + number * step for number in range(100)]


async def test_instants_of_one_millisecond_have_executions_of_their_own(
    database: Database,
) -> None:
    job = await make_job(database, CATCH_UP)
    fire = await the_only(database)
    near = [NOW + timedelta(microseconds=number) for number in range(5)]
    fires = tuple(Fire(scheduled_execution(job.job_id, at), at, at) for at in near)
    assert len({one.execution_id.bytes[:6] for one in fires}) == 1
    await fire_batch(database, [replace(fire, fires=fires, settled=near[-1])])
    rows = await database.fetch(EXECUTIONS, job.job_id)
    assert [row["scheduled_time"] for row in rows] == near


async def test_a_batch_cut_in_the_middle_leaves_all_or_nothing(database: Database) -> None:
    """Killed between the executions and the skips of a job that has both, and overlaps as well."""
    schedule = replace(CATCH_UP, overlap_policy=OverlapPolicy.QUEUE_ONE)
    job = await make_job(database, schedule, created_at=NOW - timedelta(days=1))
    batch = await settled(database, NOW + timedelta(minutes=10))
    await database.execute(
        sql(
            "create function foliot.wait() returns trigger language plpgsql as $$"
            " begin perform pg_advisory_xact_lock(99); return new; end $$"
        )
    )
    await database.execute(
        sql("create trigger wait before insert on foliot.skips execute function foliot.wait()")
    )
    async with database.transaction() as holder:
        await holder.execute(sql("select pg_advisory_xact_lock(99)"))
        firing = asyncio.create_task(fire_batch(database, batch))
        waits = (
            "from pg_stat_activity where datname = current_database() and wait_event = 'advisory'"
        )
        await _until(database, f"select count(*) > 0 {waits}")
        await database.execute(sql(f"select pg_terminate_backend(pid) {waits}"))
        with pytest.raises(DatabaseError):
            await firing
    assert await all_settled(database) == (0, 0, 0)
    report = await fire_batch(database, batch)
    # Eleven instants: eight too old, one starts, one is held, one overlaps.
    assert report.applied == (Fired(job.job_id, 2, 9),)
    skips = [(row["count"], row["reason"]) for row in await database.fetch(SKIPS, job.job_id)]
    assert skips == [(8, "MISFIRE"), (1, "OVERLAP")]


async def test_a_locked_job_is_passed_over_and_the_others_fire(database: Database) -> None:
    locked, free = await make_job(database), await make_job(database)
    batch = await settled(database)
    async with database.transaction() as frozen:
        await frozen.execute(sql("select from foliot.jobs where id = $1 for update"), locked.job_id)
        report = await fire_batch(database, batch)
        assert [one.job_id for one in report.applied] == [free.job_id]
        assert report.passed_over == (locked.job_id,)


async def test_taking_waits_for_a_lock_no_longer_than_its_limit(database: Database) -> None:
    locked, free = await make_job(database), await make_job(database)
    batch = await settled(database)
    async with database.transaction() as frozen:
        await frozen.execute(sql("select from foliot.jobs where id = $1 for update"), locked.job_id)
        began = time.monotonic()
        with pytest.raises(TransactionConflict):
            async with database.connection() as session:
                await fire_in(
                    session, sorted(batch, key=lambda one: one.job_id), take=True, now=None
                )
        assert 0.9 < time.monotonic() - began < 1.9
    async with database.transaction() as frozen:
        await frozen.execute(sql("select from foliot.jobs where id = $1 for update"), locked.job_id)
        report = await fire_batch(database, batch, take=True)
    assert [one.job_id for one in report.applied] == [free.job_id]
    assert report.passed_over == (locked.job_id,)


async def test_taking_fires_once_the_holder_lets_go(database: Database) -> None:
    job = await make_job(database)
    batch = await settled(database)
    async with database.transaction() as holder:
        await holder.execute(sql("select from foliot.jobs for update"))
        taking = asyncio.create_task(fire_batch(database, batch, take=True))
        await _until(database, "select count(*) > 0 from pg_locks where not granted")
    assert [one.job_id for one in (await taking).applied] == [job.job_id]


async def test_taking_sees_what_the_holder_did(database: Database) -> None:
    job = await make_job(database)
    batch = await settled(database)
    async with database.transaction() as holder:
        await fire_in(holder, batch, take=False, now=None)
        taking = asyncio.create_task(fire_batch(database, batch, take=True))
        await _until(database, "select count(*) > 0 from pg_locks where not granted")
    assert (await taking).passed_over == (job.job_id,)
    assert await all_settled(database) == (1, 0, 1)


async def test_limited_executions_wait_and_future_ones_are_pending(database: Database) -> None:
    limited = await make_job(database, limit_keys=["job:1"])
    later = [await make_job(database), await make_job(database, limit_keys=["job:2"])]
    batch = [
        replace(one, fires=(replace(one.fires[0], available_at=NOW + SECOND),))
        if one.job_id != limited.job_id
        else one
        for one in await settled(database)
    ]
    await fire_batch(database, batch, now=NOW)
    (held,) = await database.fetch(EXECUTIONS, limited.job_id)
    assert (held["status"], held["hold"], held["rank"]) == ("WAITING", "LIMIT", None)
    assert (held["limit_keys"], held["queued_at"]) == (["job:1"], None)
    for job in later:
        (pending,) = await database.fetch(EXECUTIONS, job.job_id)
        assert (pending["status"], pending["hold"], pending["rank"]) == ("PENDING", None, None)
        assert (pending["scheduled_time"], pending["available_at"]) == (NOW, NOW + SECOND)
        assert pending["queued_at"] is None


async def test_a_job_without_a_next_instant_is_completed(database: Database) -> None:
    job = await make_job(database, Schedule(ScheduleType.ONE_TIME, run_at=NOW))
    await fire_batch(database, await settled(database))
    row = await job_row(database, job.job_id)
    assert (row["status"], row["next_instant"], row["next_run_at"]) == ("COMPLETED", None, None)
    assert row["last_instant"] == NOW


async def test_an_instant_that_overlaps_is_not_one_of_the_last_runs(database: Database) -> None:
    twice = replace(CATCH_UP, interval_seconds=3600, max_runs=2, overlap_policy=OverlapPolicy.SKIP)
    job = await make_job(database, twice, fired_count=1)
    running = await make_execution(database, job, status="RUNNING")
    (overlaps,) = (await fire_batch(database, await settled(database))).applied
    assert overlaps == Fired(job.job_id, 0, 1)
    row = await job_row(database, job.job_id)
    assert (row["status"], row["next_instant"]) == ("ACTIVE", NOW + timedelta(hours=1))
    await database.execute(sql("delete from foliot.executions where id = $1"), running.execution_id)
    await fire_batch(database, await settled(database, NOW + timedelta(hours=1)))
    row = await job_row(database, job.job_id)
    assert (row["status"], row["next_instant"], row["fired_count"]) == ("COMPLETED", None, 2)


async def test_what_is_settled_only_moves_forward(database: Database) -> None:
    later = NOW + timedelta(hours=5)
    job = await make_job(database, last_instant=later)
    await fire_batch(database, await settled(database))
    assert (await job_row(database, job.job_id))["last_instant"] == later


async def test_one_bad_job_does_not_poison_its_batch(database: Database) -> None:
    good = [await make_job(database) for _ in range(8)]
    bad = await make_job(database, start_deadline_seconds=1e300)
    report = await fire_batch(database, await settled(database))
    assert sorted(one.job_id for one in report.applied) == sorted(job.job_id for job in good)
    ((refused, error),) = report.refused
    assert refused == bad.job_id
    assert error.sqlstate == "22008"
    row = await job_row(database, bad.job_id)
    assert (row["next_instant"], row["fired_count"]) == (NOW, 0)
    assert await database.fetch(EXECUTIONS, bad.job_id) == []


async def test_a_bad_skip_record_is_its_jobs_alone(database: Database) -> None:
    good, bad = await make_job(database), await make_job(database)
    none = Skip(NOW, NOW, 0, SkipReason.MISFIRE)
    batch = [
        replace(one, skips=(none,)) if one.job_id == bad.job_id else one
        for one in await settled(database)
    ]
    report = await fire_batch(database, batch)
    assert [one.job_id for one in report.applied] == [good.job_id]
    assert [job_id for job_id, _ in report.refused] == [bad.job_id]
    assert report.refused[0][1].constraint == "skips_count_check"


async def test_a_failure_that_no_job_caused_is_raised_at_once(database: Database) -> None:
    for _ in range(4):
        await make_job(database)
    batch = await settled(database)
    await database.execute(sql("alter function foliot.lock_flows rename to lock_flows_away"))
    with pytest.raises(StatementFailed, match="lock_flows"):
        await fire_batch(database, batch)


async def test_what_was_decided_long_ago_has_to_be_decided_anew(database: Database) -> None:
    """Held up on its way, as by a disk that hangs: by now it may be a misfire."""
    job = await make_job(database)
    batch = await settled(database)
    with pytest.raises(TransactionConflict, match="decided too long ago"):
        await fire_batch(database, batch, as_of=NOW, now=NOW + 5.001 * SECOND)
    assert await all_settled(database) == (0, 0, 0)
    report = await fire_batch(database, batch, as_of=NOW, now=NOW + 5 * SECOND)
    assert report.applied == (Fired(job.job_id, 1, 0),)


async def test_a_grace_that_passes_on_the_way_counts(database: Database) -> None:
    brief = Schedule(
        ScheduleType.INTERVAL, interval_seconds=3600, misfire_grace_seconds=1, jitter_seconds=0.5
    )
    strict, free = await make_job(database, brief), await make_job(database)
    batch = await settled(database)
    report = await fire_batch(database, batch, as_of=NOW, now=NOW + 1.501 * SECOND)
    assert report.passed_over == (strict.job_id,)
    assert report.applied == (Fired(free.job_id, 1, 0),)
    report = await fire_batch(database, batch, as_of=NOW, now=NOW + 1.5 * SECOND)
    assert report.applied == (Fired(strict.job_id, 1, 0),)


async def test_an_empty_batch_is_no_call_at_all(database: Database) -> None:
    await database.close()
    assert (await fire_batch(database, [])).applied == ()
