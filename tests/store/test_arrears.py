"""What is late is found, however it came to be, and what nobody can do anything about is not."""

from datetime import datetime, timedelta

import pytest

from foliot.core.ids import JobId, SchedulerId
from foliot.core.model import Schedule, ScheduleType
from foliot.runtime.chance import fresh_id
from foliot.runtime.loop import Passes
from foliot.runtime.metrics import OLDEST_INSTANT
from foliot.runtime.server_time import ServerTime
from foliot.scheduler.firing import Refusals
from foliot.scheduler.standing import LEARN, Standing
from foliot.store.arrears import WINDOW_SECONDS, Arrears, read_arrears
from foliot.store.database import Database
from foliot.store.server_clock import read_clock
from foliot.store.shards import Scheduler, renew
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.rows import NOW, make_job, make_worker
from foliot.testing.running import make_running

HEARD = sql("update foliot.workers set last_heartbeat_at = $2, status = $3 where id = $1")
DELIVERY = sql(
    "insert into foliot.deliveries (id, fence, tenant_id, job_id, status, created_at,"
    " next_attempt_at, delivered_at)"
    " select id, fence, tenant_id, job_id, 'SUCCEEDED', $2, $2, $3 from foliot.executions"
    " where id = $1"
)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


async def due(database: Database, at: datetime, **changes: object) -> JobId:
    schedule = Schedule(ScheduleType.ONE_TIME, run_at=at)
    return (await make_job(database, schedule, next_instant=at, **changes)).job_id


async def late(database: Database, *unfit: JobId) -> Arrears:
    return await read_arrears(database, unfit, NOW)


async def test_nothing_is_late_where_nothing_is_due(database: Database) -> None:
    await due(database, ago(-1))
    await due(database, ago(900), status="PAUSED")
    assert await late(database) == Arrears(0, 0, 0)


async def test_the_oldest_instant_counts_whatever_its_shard(database: Database) -> None:
    for seconds in (1, 40, 7):
        await due(database, ago(seconds))
    found = await late(database)
    assert found.instant_seconds == 40
    assert OLDEST_INSTANT._value.get() == 40
    assert not found.checks()["instants"].ok


async def test_a_job_that_cannot_be_fired_is_no_sign_that_nobody_fires(database: Database) -> None:
    poison = await due(database, ago(4000))
    await due(database, ago(2))
    assert (await late(database)).instant_seconds == 4000
    assert (await late(database, poison)).instant_seconds == 2


async def test_who_does_not_know_those_jobs_looks_back_so_far_while_a_scheduler_lives(
    database: Database,
) -> None:
    await due(database, ago(WINDOW_SECONDS + 1))
    assert (await read_arrears(database, now=NOW)).instant_seconds > WINDOW_SECONDS
    await renew(database, Scheduler(SchedulerId(fresh_id()), "host", "0"), {}, NOW)
    assert (await read_arrears(database, now=NOW)).instant_seconds == 0
    await due(database, ago(WINDOW_SECONDS - 1))
    assert (await read_arrears(database, now=NOW)).instant_seconds == WINDOW_SECONDS - 1


@pytest.mark.parametrize(("status", "seconds"), [("ACTIVE", 45), ("DRAINING", 45), ("DEAD", 0)])
async def test_a_worker_that_is_silent_is_late_once_its_time_is_over(
    database: Database, status: str, seconds: float
) -> None:
    worker = await make_worker(database)
    await database.execute(HEARD, worker, ago(60), status)
    assert (await late(database)).lease_seconds == seconds
    await database.execute(HEARD, worker, ago(14), status)
    assert (await late(database)).lease_seconds == 0


async def test_a_callback_is_late_from_when_it_is_due(database: Database) -> None:
    _, rows = await make_running(database, 3)
    first, second, third = (row.execution_id for row in rows)
    await database.execute(DELIVERY, first, ago(-60), None)
    await database.execute(DELIVERY, second, ago(900), ago(800))
    assert (await late(database)).callback_seconds == 0
    await database.execute(DELIVERY, third, ago(61), None)
    found = await late(database)
    assert found.callback_seconds == 61
    assert not found.checks()["callbacks"].ok


async def test_a_scheduler_is_ready_while_its_loops_and_what_is_due_get_on(
    database: Database,
) -> None:
    clock, refusals = ManualClock(), Refusals()
    passes = Passes(clock)
    time = ServerTime(lambda: read_clock(database), clock)
    standing = Standing(database, time, refusals, passes)
    assert not (await standing.checks())["database"].ok
    passes.begin(LEARN)
    passes.begin("fire")
    job_id = await due(database, ago(100))
    await standing.run_once(NOW)
    assert not (await standing.checks())["instants"].ok
    refusals.refuse(job_id, NOW, ValueError("unreadable"))
    await standing.run_once(NOW)
    assert all(check.ok for check in (await standing.checks()).values())
    clock.seconds += 11
    assert not (await standing.checks())["database"].ok
    passes.succeed(LEARN, 100)
    passes.fail("fire", ValueError("no such thing"))
    clock.seconds += 60
    checks = await standing.checks()
    assert checks["database"].ok
    assert checks["loops"].detail == "without a good pass: fire for 71 s no such thing"
