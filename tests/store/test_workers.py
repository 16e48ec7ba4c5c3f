"""Workers on a real server: alive by their heartbeat, dead for good."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.states import WorkerState
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.errors import StatementFailed
from foliot.store.workers import (
    Beat,
    Held,
    WorkerProfile,
    beat,
    bury_silent,
    deregister,
    drain,
    register,
)
from foliot.testing.database import sql
from foliot.testing.rows import NOW, make_execution, make_tenant, make_worker
from foliot.testing.running import make_running, until_blocked

READ = sql("select * from foliot.workers where id = $1")
PROFILE = WorkerProfile("mail-1", "host", "1.0", ["mail", "default"], 8, handlers=["b", "a"])


async def test_a_worker_registers_under_a_fresh_id(database: Database) -> None:
    tenant = await make_tenant(database)
    first, second = WorkerId(uuid4()), WorkerId(uuid4())
    await register(database, first, PROFILE, NOW)
    profile = WorkerProfile("x", "h", "1", ["q"], 1, tenant, ["gpu"], "eu")
    await register(database, second, profile, NOW)
    with pytest.raises(StatementFailed):
        await register(database, second, PROFILE, NOW)
    one = await database.fetch_row(READ, first)
    two = await database.fetch_row(READ, second)
    assert one is not None
    assert two is not None
    assert one["status"] == "ACTIVE"
    assert (one["queues"], one["handlers"]) == (["default", "mail"], ["a", "b"])
    assert (one["registered_at"], one["last_heartbeat_at"], one["started"]) == (NOW, NOW, [])
    assert (two["tenant_id"], two["labels"], two["region"]) == (tenant, ["gpu"], "eu")


async def test_a_heartbeat_tells_what_began_and_learns_what_is_held(database: Database) -> None:
    worker, rows = await make_running(database, 2)
    await make_running(database, 1)  # somebody else's
    await database.execute(
        sql("update foliot.executions set cancel_requested_at = $2, claimed_at = $2 where id = $1"),
        rows[1].execution_id,
        NOW,
    )
    later = NOW + timedelta(seconds=5)
    answer = await beat(database, worker, [rows[0].execution_id], later)
    held = [Held(rows[0].execution_id, 3, False), Held(rows[1].execution_id, 3, True)]
    assert answer == Beat(
        WorkerState.ACTIVE, tuple(sorted(held, key=lambda each: each.execution_id))
    )
    row = await database.fetch_row(READ, worker)
    assert row is not None
    assert (row["started"], row["last_heartbeat_at"]) == ([rows[0].execution_id], later)
    assert await beat(database, worker, [], NOW) is not None
    row = await database.fetch_row(READ, worker)
    assert row is not None
    assert (row["started"], row["last_heartbeat_at"]) == ([], later), "time does not go back"


async def test_a_heartbeat_looks_no_further_back_than_a_minute_before_the_last(
    database: Database,
) -> None:
    """What it says it runs is found however old; further back, a snapshot may keep a million."""
    worker, rows = await make_running(database, 3)
    old, new = NOW - timedelta(seconds=61), NOW - timedelta(seconds=59)
    for row, claimed_at in zip(rows, [old, old, new], strict=True):
        await database.execute(
            sql("update foliot.executions set claimed_at = $2 where id = $1"),
            row.execution_id,
            claimed_at,
        )
    answer = await beat(database, worker, [rows[0].execution_id], NOW + timedelta(hours=1))
    assert answer is not None
    held = {each.execution_id for each in answer.held}
    assert held == {rows[0].execution_id, rows[2].execution_id}


async def test_a_heartbeat_does_not_wake_the_dead(database: Database) -> None:
    worker = await make_worker(database, status="DEAD")
    assert await beat(database, worker, [ExecutionId(uuid4())], NOW + timedelta(hours=1)) is None
    row = await database.fetch_row(READ, worker)
    assert row is not None
    assert (row["status"], row["last_heartbeat_at"], row["started"]) == ("DEAD", NOW, [])
    assert await beat(database, WorkerId(uuid4()), []) is None


async def test_a_draining_worker_lives_and_claims_nothing(database: Database) -> None:
    worker, made = WorkerId(uuid4()), await make_execution(database)
    await register(database, worker, PROFILE, NOW)
    assert await drain(database, worker)
    assert not await drain(database, worker)
    answer = await beat(database, worker, [], NOW)
    assert answer == Beat(WorkerState.DRAINING, ())
    request = ClaimRequest(worker, "default", [made.lane_id], 1)
    assert await claim(database, request, NOW) == ()


async def test_a_worker_that_stopped_is_dead_at_once(database: Database) -> None:
    worker, (row,) = await make_running(database, 1)
    assert await deregister(database, worker, [row.execution_id])
    assert not await deregister(database, worker)
    assert await beat(database, worker, []) is None
    assert not await drain(database, worker)
    kept = await database.fetch_row(READ, worker)
    assert kept is not None
    assert (kept["status"], kept["started"]) == ("DEAD", [row.execution_id])


async def test_silence_of_more_than_fifteen_seconds_is_death(database: Database) -> None:
    silent = await make_worker(database)
    draining = await make_worker(database, status="DRAINING")
    fresh = await make_worker(database, last_heartbeat_at=NOW + timedelta(seconds=1))
    await make_worker(database, status="DEAD")
    assert await bury_silent(database, now=NOW + timedelta(seconds=15)) == ()
    buried = await bury_silent(database, now=NOW + timedelta(seconds=15.5))
    assert set(buried) == {silent, draining}
    assert await bury_silent(database, now=NOW + timedelta(seconds=15.5)) == ()
    assert await beat(database, fresh, []) is not None
    assert await beat(database, silent, []) is None


async def test_a_heartbeat_that_comes_first_keeps_the_worker_alive(
    database: Database, database_url: str
) -> None:
    """The burial waits for the heartbeat's row lock, and looks again."""
    worker = await make_worker(database)
    now = NOW + timedelta(seconds=60)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(
            sql("update foliot.workers set last_heartbeat_at = $2 where id = $1"), worker, now
        )
        burial = asyncio.create_task(bury_silent(database, now=now))
        await until_blocked(session)
    assert await burial == ()
    assert await beat(database, worker, []) is not None
