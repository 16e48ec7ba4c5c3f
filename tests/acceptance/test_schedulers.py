"""Two schedulers as real processes, every-second jobs, and what may happen to one of them: whatever
it is, each instant is fired once, and soon."""

import asyncio
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import asyncpg
import pytest

from foliot.core.ids import JobId, shard_of
from foliot.core.model import MisfirePolicy, OverlapPolicy, Schedule, ScheduleType
from foliot.store.connecting import connect
from foliot.store.database import Database
from foliot.store.jobs import create
from foliot.testing.commands import FoliotCommand, clean_environ, eventually, foliot
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.jobs import new_job

JOBS: Final = 200
HERD: Final = 5000
COPY_JOB: Final = sql("""
insert into foliot.jobs select (jsonb_populate_record(j, jsonb_build_object(
         'id', copy.id, 'shard', copy.shard, 'name', copy.id))).*
  from foliot.jobs j cross join unnest($2::uuid[], $3::smallint[]) copy(id, shard) where j.id = $1
""")
COPY_VERSION: Final = sql("""
insert into foliot.job_versions select (jsonb_populate_record(v, jsonb_build_object(
         'job_id', copy.id))).*
  from foliot.job_versions v cross join unnest($2::uuid[]) copy(id) where v.job_id = $1
""")
EVERY_SECOND: Final = Schedule(
    ScheduleType.CRON,
    cron_expression="* * * * * *",
    overlap_policy=OverlapPolicy.ALLOW,
    misfire_policy=MisfirePolicy.FIRE_ALL,  # however long the processes take to start
)
OWNERS: Final = sql(
    "select count(owner) as shards from foliot.shard_leases group by owner having count(owner) > 0"
)
LEASES: Final = sql("select shard, owner, epoch from foliot.shard_leases order by 1")
CUT_OFF: Final = sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1")
NOW: Final = sql("select clock_timestamp()")
SETTLED: Final = sql("select bool_and(coalesce(last_instant >= $1, false)) from foliot.jobs")
FIRED: Final = sql(
    "select job_id, scheduled_time as instant, created_at - scheduled_time as late, status"
    " from foliot.executions order by 1, 2"
)
FIRST: Final = sql(
    "select min(e.created_at - greatest(e.scheduled_time, j.created_at)) as late"
    " from foliot.executions e join foliot.jobs j on j.id = e.job_id group by j.id"
)
SKIPPED: Final = sql("select count(*) from foliot.skips")


def ask(url: str, query: Any, *arguments: object) -> list[asyncpg.Record]:  # noqa: ANN401 - a Statement
    async def asking() -> list[asyncpg.Record]:
        async with connect(url) as session:
            return await session.fetch(query, *arguments)

    return asyncio.run(asking())


def now(url: str) -> datetime:
    told: datetime = ask(url, NOW)[0][0]
    return told


async def make_jobs(url: str, schedules: Iterable[Schedule]) -> None:
    async with Database(url) as database:
        for schedule in schedules:
            await create(database, new_job(schedule), changed_by="alice")


async def make_herd(url: str, schedule: Schedule, size: int) -> None:
    """One job, and copies of it."""
    async with Database(url) as database:
        job = (await create(database, new_job(schedule), changed_by="alice")).job
        ids = [JobId(uuid4()) for _ in range(size - 1)]
        await database.execute(COPY_JOB, job.job_id, ids, [shard_of(each) for each in ids])
        await database.execute(COPY_VERSION, job.job_id, ids)


def shares(url: str) -> list[int]:
    """How many shards each scheduler holds that holds some."""
    return [row["shards"] for row in ask(url, OWNERS)]


@contextmanager
def two_schedulers(url: str) -> Iterator[tuple[FoliotCommand, FoliotCommand]]:
    """Both at work, with half of the shards each."""
    asyncio.run(make_jobs(url, [EVERY_SECOND] * JOBS))
    environ = clean_environ(FOLIOT_DATABASE_URL=url)
    with (
        foliot("server", "--role", "scheduler", environ=environ) as one,
        foliot("server", "--role", "scheduler", environ=environ) as two,
    ):
        eventually(lambda: shares(url) == [32, 32], what="half of the shards each")
        wait_for_instants(url, now(url) + timedelta(seconds=1))
        yield one, two


def wait_for_instants(url: str, until: datetime) -> None:
    """Until every job has settled its instants up to there."""

    def reached() -> bool:
        settled: bool = ask(url, SETTLED, until)[0][0]
        return settled

    eventually(reached, what=f"all instants up to {until}")


def check_ledger(url: str, since: datetime) -> timedelta:
    """Every second has its one execution, for each job; how late the latest one since was made."""
    rows = ask(url, FIRED)
    assert ask(url, SKIPPED)[0][0] == 0
    assert {row["status"] for row in rows} == {"QUEUED"}, "none was early"
    by_job: dict[UUID, list[datetime]] = {}
    for row in rows:
        by_job.setdefault(row["job_id"], []).append(row["instant"])
    assert len(by_job) == JOBS
    for instants in by_job.values():
        steps = {later - earlier for earlier, later in pairwise(instants)}
        assert steps == {timedelta(seconds=1)}, "none is missing and none is there twice"
    late: timedelta = max(row["late"] for row in rows if row["instant"] >= since)
    return late


def test_a_killed_scheduler_is_not_missed(database_url: str) -> None:
    with two_schedulers(database_url) as (one, two):
        killed_at = now(database_url)
        one.send(signal.SIGKILL)
        one.ended()
        wait_for_instants(database_url, killed_at + timedelta(seconds=5))
        two.send(signal.SIGTERM)
        assert two.ended() == 0
    assert check_ledger(database_url, killed_at - timedelta(seconds=1)) <= timedelta(seconds=3)
    assert "Traceback" not in two.output


def test_a_stopped_scheduler_gives_its_shards_back_at_once(database_url: str) -> None:
    with two_schedulers(database_url) as (one, two):
        stopped_at = now(database_url)
        began = time.monotonic()
        one.send(signal.SIGTERM)
        assert one.ended() == 0
        assert time.monotonic() - began < 2
        eventually(
            lambda: shares(database_url) == [64],
            what="the other has them all",
            within_seconds=2,
        )
        wait_for_instants(database_url, stopped_at + timedelta(seconds=3))
        two.send(signal.SIGTERM)
        assert two.ended() == 0
        assert shares(database_url) == []
    assert check_ledger(database_url, stopped_at - timedelta(seconds=1)) <= timedelta(seconds=2)
    for command in (one, two):
        assert "Traceback" not in command.output
        assert command.lines[-1].endswith("INFO scheduler stopped")


@pytest.mark.timeout(60)
def test_a_scheduler_that_freezes_for_longer_than_its_lease_changes_nothing(
    database_url: str,
) -> None:
    with two_schedulers(database_url) as (one, two):
        frozen_at = now(database_url)
        one.send(signal.SIGSTOP)
        eventually(lambda: shares(database_url) == [64], what="one has them all")
        one.send(signal.SIGCONT)
        eventually(lambda: shares(database_url) == [32, 32], what="halves again")
        wait_for_instants(database_url, now(database_url) + timedelta(seconds=1))
        for command in (one, two):
            command.send(signal.SIGTERM)
            assert command.ended() == 0
    assert check_ledger(database_url, frozen_at - timedelta(seconds=1)) <= timedelta(seconds=3)


def test_a_job_that_is_due_at_once_is_on_time(database_url: str) -> None:
    schedules = [
        Schedule(ScheduleType.IMMEDIATE),
        Schedule(ScheduleType.DELAYED, delay_seconds=0.05),
        Schedule(ScheduleType.DELAYED, delay_seconds=0.5),
        Schedule(ScheduleType.ONE_TIME, run_at=now(database_url) - timedelta(hours=1)),
        Schedule(ScheduleType.INTERVAL, interval_seconds=0.1, overlap_policy=OverlapPolicy.ALLOW),
    ] * 4
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url)
    with foliot("server", "--role", "scheduler", environ=environ):
        eventually(lambda: shares(database_url) == [64], what="all shards")
        asyncio.run(make_jobs(database_url, schedules))
        eventually(
            lambda: len(ask(database_url, FIRST)) == len(schedules), what="an execution of each"
        )
    late: list[timedelta] = [row["late"] for row in ask(database_url, FIRST)]
    assert min(late) >= timedelta()
    assert sorted(late)[len(late) // 2] <= timedelta(seconds=0.25)


def test_a_herd_of_one_instant_is_fired_in_a_few_seconds_and_none_of_it_early(
    database_url: str,
) -> None:
    due = (now(database_url) + timedelta(seconds=9)).replace(microsecond=0)
    daily = f"{due.second} {due.minute} {due.hour} * * *"
    asyncio.run(make_herd(database_url, Schedule(ScheduleType.CRON, cron_expression=daily), HERD))
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url)
    with foliot("server", "--role", "scheduler", environ=environ):
        wait_for_instants(database_url, due)
    rows = ask(database_url, FIRED)
    assert len({row["job_id"] for row in rows}) == len(rows) == HERD
    assert {(row["instant"], row["status"]) for row in rows} == {(due, "QUEUED")}
    assert timedelta() <= min(row["late"] for row in rows)
    assert max(row["late"] for row in rows) <= timedelta(seconds=5)


@pytest.mark.direct
@pytest.mark.timeout(60)
def test_an_outage_longer_than_a_lease_changes_no_owner(
    server: DatabaseFactory, database_url: str
) -> None:
    name = urlsplit(database_url).path.removeprefix("/")
    with two_schedulers(database_url) as (one, two):
        before = ask(database_url, LEASES)
        began = now(server.admin_url)
        ask(server.admin_url, sql(f"alter database {name} allow_connections false"))
        ask(server.admin_url, CUT_OFF, name)
        eventually(
            lambda: now(server.admin_url) > began + timedelta(seconds=11), what="eleven seconds"
        )
        ask(server.admin_url, sql(f"alter database {name} allow_connections true"))
        wait_for_instants(database_url, began + timedelta(seconds=16))
        assert ask(database_url, LEASES) == before
        for command in (one, two):
            command.send(signal.SIGTERM)
            assert command.ended() == 0
            assert "Traceback" not in command.output
    check_ledger(database_url, began)


def test_a_scheduler_waits_for_a_database_that_is_migrated(empty_database_url: str) -> None:
    environ = clean_environ(FOLIOT_DATABASE_URL=empty_database_url)
    with foliot("server", "--role", "scheduler", environ=environ) as command:
        command.line_with("(run `foliot db migrate`); waiting")
        with foliot("db", "migrate", environ=environ) as migrate:
            assert migrate.ended() == 0
        command.line_with("runs on")
        command.send(signal.SIGTERM)
        assert command.ended() == 0


def test_a_scheduler_without_an_address_does_not_start() -> None:
    with foliot("server", "--role", "scheduler", environ=clean_environ()) as command:
        assert command.ended() == 2
        assert "FOLIOT_DATABASE_URL: is not set" in command.output
