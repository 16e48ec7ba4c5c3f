"""Executions are found whether they live or are over, and only in the days they can be in."""

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

from foliot.core.ids import ExecutionId, requested_execution
from foliot.core.model import ErrorType, Failure
from foliot.core.states import ExecutionEvent, ExecutionState
from foliot.store.cancelling import cancel
from foliot.store.database import Database
from foliot.store.execution_rows import (
    ExecutionFilter,
    list_executions,
    read_executions,
    searched,
)
from foliot.store.finishing import Outcome, finish
from foliot.store.partitions import provide_partitions
from foliot.store.statements import statement
from foliot.testing.database import sql
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_executions, make_job
from foliot.testing.running import make_running

DAY = timedelta(days=1)


async def test_a_row_that_is_finishing_is_never_missed(database: Database) -> None:
    """However the reads fall: before, during and after each finish."""
    worker, rows = await make_running(database, 60)
    ids = [row.execution_id for row in rows]
    done = asyncio.Event()

    async def finish_all() -> None:
        for row in rows:
            outcome = Outcome(row.execution_id, row.fence, ExecutionEvent.SUCCEED)
            await finish(database, worker, [outcome], now=NOW)
        done.set()

    async def read_all() -> int:
        reads = 0
        while not done.is_set():
            assert len(await read_executions(database, DEFAULT_TENANT, ids)) == len(ids)
            reads += 1
        return reads

    async with asyncio.TaskGroup() as group:
        group.create_task(finish_all())
        reading = group.create_task(read_all())
    assert reading.result() > 0
    found = await read_executions(database, DEFAULT_TENANT, ids)
    assert {each.status for each in found.values()} == {ExecutionState.SUCCEEDED}


async def test_ids_that_nobody_made_are_not_found(database: Database) -> None:
    strange = [
        ExecutionId(uuid4()),
        ExecutionId(UUID(int=0)),
        ExecutionId(UUID(int=2**128 - 1)),
        requested_execution(DEFAULT_TENANT, (await make_job(database)).job_id, "x", "y", NOW),
    ]
    assert await read_executions(database, DEFAULT_TENANT, strange) == {}


async def test_only_the_days_from_its_instant_on_are_read(database: Database) -> None:
    async with database.connection() as session:
        await provide_partitions(session, NOW - 9 * DAY, days_ahead=14)
    worker, (row,) = await make_running(database, 1)
    outcome = Outcome(row.execution_id, row.fence, ExecutionEvent.SUCCEED)
    await finish(database, worker, [outcome], now=NOW)
    explained = sql(
        "explain (analyze, costs off, timing off, summary off) "
        + statement("executions/read_rows").sql
    )
    since = [earliest for _, earliest in searched([row.execution_id])]
    lines = await database.fetch(explained, DEFAULT_TENANT, [row.execution_id], since, [None])
    days = [line[0] for line in lines if " on attempts_2" in line[0]]
    assert len([line for line in days if "never executed" in line]) >= 8
    assert len([line for line in days if "rows=1" in line]) == 1
    assert row.execution_id in await read_executions(database, DEFAULT_TENANT, [row.execution_id])


async def test_a_cancelled_retry_keeps_its_attempts_and_adds_none(database: Database) -> None:
    worker, (row,) = await make_running(database, 1)
    failure = Failure(ErrorType.TIMEOUT, "too slow")
    again = Outcome(row.execution_id, row.fence, ExecutionEvent.RETRY, failure=failure)
    await finish(database, worker, [again], now=NOW)
    await cancel(database, DEFAULT_TENANT, [row.execution_id], "enough", now=NOW)
    found = (await read_executions(database, DEFAULT_TENANT, [row.execution_id]))[row.execution_id]
    assert found.status is ExecutionState.CANCELLED
    assert found.error["message"] == "enough"
    assert [attempt.error["message"] for attempt in found.attempts] == ["too slow"]


async def test_another_tenants_are_not_found_by_id_or_list(database: Database) -> None:
    job = await make_job(database, tenant_id=uuid4())
    (theirs,) = await make_executions(database, job, 1)
    assert await read_executions(database, DEFAULT_TENANT, [theirs.execution_id]) == {}
    for wanted in (ExecutionFilter(), ExecutionFilter(job_id=job.job_id)):
        page = (
            await list_executions(database, DEFAULT_TENANT, wanted, before=None, limit=10)
        ).executions
        assert page == []
