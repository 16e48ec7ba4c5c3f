"""Executions in a worker's hands, for tests of how they leave them."""

import asyncio
from typing import Any

import asyncpg

from foliot.core.ids import WorkerId
from foliot.store.database import Database
from foliot.store.session import Session
from foliot.testing.database import sql
from foliot.testing.rows import ExecutionRow, JobRow, make_executions, make_job, make_worker

_COUNTS = sql(
    "select (select count(*) from foliot.executions), (select count(*) from foliot.attempts),"
    " (select count(*) from foliot.dead_letters), (select count(*) from foliot.deliveries)"
)
# Locks are looked up anew each time; the list of sessions stays as it first was in a transaction.
_BLOCKED = sql(
    "select count(*) from pg_locks"
    " where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))"
)
_HISTORY = sql("select * from foliot.attempts where id = $1 order by fence")
_LIVE = sql("select * from foliot.executions where id = $1")


async def make_running(
    database: Database,
    number: int,
    *,
    worker_id: WorkerId | None = None,
    job: JobRow | None = None,
    **changes: object,
) -> tuple[WorkerId, list[ExecutionRow]]:
    """Claimed executions of one worker, in their second attempt under fence 3."""
    worker = worker_id or await make_worker(database)
    job = job or await make_job(database, payload={"job": 1})
    values: dict[str, object] = {
        "status": "RUNNING",
        "worker_id": worker,
        "fence": 3,
        "attempt_number": 2,
        "notify": True,
    }
    return worker, await make_executions(database, job, number, **values | changes)


async def counts(database: Database) -> tuple[int, ...]:
    """How many live rows, attempts in history, dead letters and deliveries there are."""
    row = await database.fetch_row(_COUNTS)
    return () if row is None else tuple(row)


async def live_row(database: Database, row: ExecutionRow) -> asyncpg.Record:
    (found,) = await database.fetch(_LIVE, row.execution_id)
    return found


async def only_attempt(database: Database, row: ExecutionRow) -> asyncpg.Record:
    (found,) = await database.fetch(_HISTORY, row.execution_id)
    return found


async def until_blocked(session: Session, waiting: asyncio.Task[Any] | None = None) -> None:
    """Until somebody waits for a lock of this session; who is said to has not passed it by."""
    while not await session.fetch_value(_BLOCKED):
        assert waiting is None or not waiting.done(), "it did not wait"  # noqa: S101 - a test's
