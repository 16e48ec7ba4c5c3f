"""Cancellations and start deadlines on a real server."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from foliot.core.ids import ExecutionId
from foliot.core.states import ExecutionEvent
from foliot.store.cancelling import Cancellation, cancel
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.expiring import expire
from foliot.store.finishing import Outcome, finish
from foliot.testing.database import sql
from foliot.testing.rows import (
    DEFAULT_TENANT,
    NOW,
    make_execution,
    make_executions,
    make_job,
    make_tenant,
    make_worker,
)
from foliot.testing.running import (
    counts,
    live_row,
    make_running,
    only_attempt,
    until_blocked,
)

UNCLAIMED = ["PENDING", "WAITING", "QUEUED", "RETRYING"]
HOLD = sql("select 1 from foliot.executions where id = $1 for update")
HISTORY = sql(
    "select status, final, finished_at from foliot.attempts where id = $1 order by finished_at"
)
LATER = NOW + timedelta(minutes=1)
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize("status", UNCLAIMED)
async def test_what_waits_is_over_at_once(database: Database, status: str) -> None:
    row = await make_execution(database, status=status, notify=True)
    answer = await cancel(database, DEFAULT_TENANT, [row.execution_id], "not \0 now", LATER)
    assert answer == {row.execution_id: Cancellation.CANCELLED}
    over = await only_attempt(database, row)
    assert (over["status"], over["final"], over["finished_at"]) == ("CANCELLED", True, LATER)
    assert over["error"] == {"type": "CANCELLED", "message": "not \ufffd now"}
    assert await counts(database) == (0, 1, 0, 1)


async def test_what_runs_is_asked_and_asking_again_changes_nothing(database: Database) -> None:
    worker, (row,) = await make_running(database, 1)
    for seconds in (0, 5):
        now = NOW + timedelta(seconds=seconds)
        answer = await cancel(database, DEFAULT_TENANT, [row.execution_id] * 2, "no", now)
        assert answer == {row.execution_id: Cancellation.ASKED}
    live = await live_row(database, row)
    assert (live["status"], live["worker_id"]) == ("RUNNING", worker)
    assert live["cancel_requested_at"] == NOW


async def test_another_tenants_and_finished_ones_are_not_there(database: Database) -> None:
    tenant = await make_tenant(database)
    row = await make_execution(database)
    unknown = ExecutionId(uuid4())
    answer = await cancel(database, tenant, [row.execution_id, unknown], "no")
    assert answer == dict.fromkeys((row.execution_id, unknown), Cancellation.NOT_LIVE)
    assert await counts(database) == (1, 0, 0, 0)


async def test_a_tenants_own_transaction_may_cancel(database: Database) -> None:
    tenant = await make_tenant(database)
    job = await make_job(database, tenant_id=tenant)
    waiting = await make_execution(database, job, notify=True)
    _, (running,) = await make_running(database, 1, job=job)
    theirs = await make_execution(database)
    async with database.transaction(tenant) as session:
        ids = [row.execution_id for row in (waiting, running, theirs)]
        answer = await cancel(session, tenant, ids, "no")
    assert list(answer.values()) == [
        Cancellation.CANCELLED,
        Cancellation.ASKED,
        Cancellation.NOT_LIVE,
    ]
    assert await counts(database) == (2, 1, 0, 1)


async def test_rows_are_locked_in_one_order_whatever_the_order_of_the_ids(
    database: Database, database_url: str
) -> None:
    """Or two cancels would wait for each other. The first row is held: no other is locked yet."""
    job = await make_job(database)
    rows = await make_executions(database, job, 8)
    ids = sorted((row.execution_id for row in rows), reverse=True)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(HOLD, ids[-1])
        waiting = asyncio.create_task(cancel(database, DEFAULT_TENANT, ids, "no"))
        await until_blocked(session)
        free = sql("select 1 from foliot.executions for update skip locked")
        assert len(await session.fetch(free)) == 8
    assert set((await waiting).values()) == {Cancellation.CANCELLED}


async def test_expiry_passes_over_what_somebody_holds(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    rows = await make_executions(database, job, 3, start_by=NOW)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(HOLD, rows[0].execution_id)
        assert len(await expire(database, now=LATER)) == 2
    assert await expire(database, now=LATER) == (rows[0].execution_id,)


async def test_cancels_and_claims_at_once_agree_on_each(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    rows = await make_executions(database, job, 300)
    ids = [row.execution_id for row in rows]

    async def cancelling(part: list[ExecutionId]) -> dict[ExecutionId, Cancellation]:
        async with Database(database_url) as own:
            found: dict[ExecutionId, Cancellation] = {}
            for start in range(0, len(part), 15):
                found |= await cancel(own, DEFAULT_TENANT, part[start : start + 15], "no")
            return found

    async def claiming() -> set[ExecutionId]:
        async with Database(database_url) as own:
            worker, found = await make_worker(own), set[ExecutionId]()
            request = ClaimRequest(worker, "default", [job.lane_id], 10)
            for _ in range(15):
                found |= {got.execution_id for got in await claim(own, request)}
            return found

    first, second, claimed = await asyncio.gather(
        cancelling(ids), cancelling(ids[::-1]), claiming()
    )
    for execution_id in ids:
        answers = {first[execution_id], second[execution_id]}
        if execution_id in claimed:
            assert answers == {Cancellation.ASKED}
        else:
            assert answers == {Cancellation.CANCELLED, Cancellation.NOT_LIVE}
    assert await counts(database) == (len(claimed), 300 - len(claimed), 0, 0)
    asked = sql("select count(*) from foliot.executions where cancel_requested_at is not null")
    assert await database.fetch_value(asked) == len(claimed)


async def test_a_cancel_that_waits_for_a_claim_asks_the_worker(
    database: Database, database_url: str
) -> None:
    row = await make_execution(database)
    worker = await make_worker(database)
    async with Database(database_url) as other, other.transaction() as session:
        claim_sql = sql("select * from foliot.claim($1, 'default', $2, 1, 10, null)")
        assert len(await session.fetch(claim_sql, worker, [row.lane_id])) == 1
        waiting = asyncio.create_task(cancel(database, DEFAULT_TENANT, [row.execution_id], "no"))
        await until_blocked(session)
    assert await waiting == {row.execution_id: Cancellation.ASKED}
    assert (await live_row(database, row))["cancel_requested_at"] is not None


@pytest.mark.parametrize("status", UNCLAIMED)
async def test_what_nobody_started_in_time_has_failed(database: Database, status: str) -> None:
    job = await make_job(database, payload={"p": 1})
    row = await make_execution(database, job, status=status, start_by=LATER, notify=True)
    assert await expire(database, now=LATER - timedelta(microseconds=1)) == ()
    assert await expire(database, now=LATER) == (row.execution_id,)
    over = await only_attempt(database, row)
    assert (over["status"], over["final"], over["error"]["type"]) == ("FAILED", True, "EXPIRED")
    letter = await database.fetch_row(sql("select * from foliot.dead_letters"))
    assert letter is not None
    assert (letter["id"], letter["reason"]) == (row.execution_id, "EXPIRED")
    assert letter["payload"] == {"p": 1}
    assert await counts(database) == (0, 1, 1, 1)


async def test_what_runs_has_met_its_deadline(database: Database) -> None:
    await make_running(database, 1, start_by=NOW)
    assert await expire(database, now=LATER) == ()


async def test_expiry_claims_and_cancels_at_once_end_each_once(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    rows = await make_executions(database, job, 200, start_by=NOW)
    worker = await make_worker(database)
    ids = [row.execution_id for row in rows]

    async def expiring() -> int:
        total = 0
        async with Database(database_url) as own:
            while ended := await expire(own, 11, LATER):
                total += len(ended)
        return total

    async def claiming() -> int:
        async with Database(database_url) as own:
            request = ClaimRequest(worker, "default", [job.lane_id], 20)
            # By a clock that is still before the deadline.
            return len(await claim(own, request, NOW - timedelta(seconds=1)))

    expired, again, claimed, cancelled = await asyncio.gather(
        expiring(), expiring(), claiming(), cancel(database, DEFAULT_TENANT, ids[150:], "no")
    )
    ended = sum(answer is Cancellation.CANCELLED for answer in cancelled.values())
    rest = len(await expire(database, 1000, LATER))
    assert expired + again + rest + claimed + ended == 200
    assert (await counts(database))[:2] == (claimed, 200 - claimed)


@pytest.mark.parametrize("event", [ExecutionEvent.RETRY, ExecutionEvent.LOSE])
@pytest.mark.parametrize("early", [timedelta(0), timedelta(seconds=1)])
async def test_an_end_in_the_microsecond_of_a_failed_attempt_comes_right_after_it(
    database: Database, event: ExecutionEvent, early: timedelta
) -> None:
    """Or before it: one that waited for the attempt to end has read its clock earlier."""
    job = await make_job(database)
    worker, rows = await make_running(database, 2, job=job, start_by=NOW - early)
    await finish(
        database, worker, [Outcome(row.execution_id, row.fence, event) for row in rows], NOW
    )
    first, second = rows
    answer = await cancel(database, DEFAULT_TENANT, [first.execution_id], "no", NOW - early)
    assert answer == {first.execution_id: Cancellation.CANCELLED}
    assert await expire(database, now=NOW - early) == (second.execution_id,)
    for row, status in ((first, "CANCELLED"), (second, "FAILED")):
        assert [tuple(each) for each in await database.fetch(HISTORY, row.execution_id)] == [
            ("FAILED", False, NOW),
            (status, True, NOW + TICK),
        ]
