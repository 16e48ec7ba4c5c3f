"""`foliot ledger verify` over real schedulers: one of them is killed, and the ledger holds; a row
is removed by hand, and it is named."""

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from foliot.core.model import Job, MisfirePolicy, OverlapPolicy, Schedule, ScheduleType
from foliot.store.database import Database
from foliot.store.jobs import create, pause, resume, update
from foliot.testing.commands import FoliotCommand, clean_environ, eventually, foliot
from foliot.testing.database import sql
from foliot.testing.engine import Engine
from foliot.testing.jobs import new_job

SECOND: Final = timedelta(seconds=1)
EVERY_SECOND: Final = Schedule(
    ScheduleType.CRON, cron_expression="* * * * * *", overlap_policy=OverlapPolicy.ALLOW
)
SCHEDULES: Final = [
    *[EVERY_SECOND] * 20,
    Schedule(ScheduleType.CRON, cron_expression="*/2 * * * * *"),  # overlaps: nobody works
    Schedule(ScheduleType.INTERVAL, interval_seconds=0.3, overlap_policy=OverlapPolicy.QUEUE_ONE),
    Schedule(ScheduleType.INTERVAL, interval_seconds=0.25, max_runs=3, jitter_seconds=0.2),
    Schedule(ScheduleType.INTERVAL, interval_seconds=0.01, misfire_policy=MisfirePolicy.FIRE_ALL),
    Schedule(ScheduleType.IMMEDIATE),
    Schedule(ScheduleType.DELAYED, delay_seconds=0.5),
]
OWNERS: Final = sql("select count(distinct owner) from foliot.shard_leases where owner is not null")
REMOVE: Final = sql("""
delete from foliot.executions
 where id = (select e.id from foliot.executions e join foliot.jobs j on j.id = e.job_id
              where j.overlap_policy = 'ALLOW' order by e.scheduled_time offset 30 limit 1)
returning job_id, job_name, scheduled_time
""")


async def change_jobs(url: str) -> None:
    """While they fire: some rest for a moment, others get another schedule."""
    async with Database(url) as database:
        jobs = [
            (await create(database, new_job(schedule), changed_by="alice")).job
            for schedule in SCHEDULES
        ]
        for job in jobs[:5]:
            await pause(database, job.tenant_id, job.job_id, changed_by="alice")
        await asyncio.gather(
            *(update(database, edited(job), changed_by="alice") for job in jobs[10:15])
        )
        for job in jobs[:5]:
            await resume(database, job.tenant_id, job.job_id, changed_by="alice")


def edited(job: Job) -> Job:
    from_now_on = Schedule(ScheduleType.INTERVAL, interval_seconds=0.7)
    return replace(job, schedule=from_now_on)


@contextmanager
def verifying(url: str, *options: str) -> Iterator[FoliotCommand]:
    environ = clean_environ(FOLIOT_DATABASE_URL=url)
    with foliot("ledger", "verify", *options, environ=environ) as command:
        yield command


@pytest.mark.timeout(90)
def test_a_killed_scheduler_leaves_a_ledger_that_holds_and_a_removed_row_is_named(
    database_url: str, tmp_path: Path
) -> None:
    engine = Engine(database_url, tmp_path)
    with engine.scheduler() as one, engine.scheduler() as two:
        eventually(lambda: engine.ask(OWNERS)[0][0] == 2, what="both have shards")
        asyncio.run(change_jobs(database_url))
        engine.until_settled(engine.now() + 2 * SECOND)
        one.send(signal.SIGKILL)
        one.ended()
        with verifying(database_url) as command:
            assert command.ended() == 0, command.output
        engine.until_settled(engine.now() + 2 * SECOND)
        two.send(signal.SIGTERM)
        assert two.ended() == 0
    check_that_it_holds(database_url)
    check_that_a_removed_row_is_named(engine)


def check_that_it_holds(url: str) -> None:
    with verifying(url) as command:
        assert command.ended() == 0, command.output
    assert command.lines[0] == "The ledger holds: every instant has exactly one outcome."
    assert any(line.startswith("  expected  ") for line in command.lines)
    with verifying(url, "--json") as command:
        assert command.ended() == 0
    told = json.loads(command.output)
    assert told["ok"]
    assert told["jobs"] == len(SCHEDULES)
    assert told["expected"] == told["fired"] + told["skipped"] > 20 * 4


def check_that_a_removed_row_is_named(engine: Engine) -> None:
    ((job_id, name, instant),) = engine.ask(REMOVE)
    with verifying(engine.url) as command:
        assert command.ended() == 1
    shown = f"{instant:%Y-%m-%d %H:%M:%S}"
    assert command.lines[0] == "The ledger does NOT hold: 1 problem in 1 job."
    assert f"job {name} ({job_id})" in command.lines
    (line,) = [each for each in command.lines if each.startswith("  MISSING")]
    assert shown in line
    assert command.lines[-1].startswith("MISSING (1): ")
    with verifying(engine.url, "--job", str(job_id), "--json") as command:
        assert command.ended() == 1
    (problem,) = json.loads(command.output)["problems"]
    assert (problem["job_id"], problem["kind"]) == (str(job_id), "MISSING")
    with verifying(engine.url, "--job", name, "--to", instant.isoformat()) as command:
        assert command.ended() == 0, command.output


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--job", "nobody"], "--job"),
        (["--job", "00000000-0000-8000-8000-000000000009"], "--job"),
        (["--tenant", "nobody"], "--tenant"),
        (["--from", "yesterday"], "--from"),
        (["--from", "0001-01-01"], "from"),
        (["--from", "2027-01-02", "--to", "2027-01-01"], "to"),
    ],
)
def test_what_cannot_be_meant_is_refused(database_url: str, options: list[str], field: str) -> None:
    with verifying(database_url, *options) as command:
        assert command.ended() == 2
    (line,) = command.lines
    assert line.startswith(f"error: {field}: ")


def test_an_empty_database_has_a_ledger_that_holds(database_url: str) -> None:
    with verifying(database_url) as command:
        assert command.ended() == 0
    assert "checked   0 jobs" in command.output
