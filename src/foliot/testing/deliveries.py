"""Completion callbacks for tests: ends that are to be told, and who tells them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from foliot.core.ids import ExecutionId
from foliot.core.states import ExecutionEvent
from foliot.runtime.clock import Clock, SystemClock
from foliot.runtime.envelope import Keyring
from foliot.settings import load_settings
from foliot.store.database import Database
from foliot.store.finishing import Outcome, finish
from foliot.testing.database import sql
from foliot.testing.rows import NOW, make_job
from foliot.testing.running import make_running
from foliot.wiring.http_targets import Outside
from foliot.wiring.http_targets import deliverer as make_deliverer
from foliot.worker.deliver import Deliverer

_SET_URL = sql(
    "update foliot.job_versions set definition = definition || jsonb_build_object('callback_url',"
    " $2::text) where job_id = $1"
)


async def make_ended(
    database: Database,
    url: str,
    number: int = 1,
    *,
    event: ExecutionEvent = ExecutionEvent.SUCCEED,
    result: Any = None,  # noqa: ANN401 - any JSON
    **changes: Any,  # noqa: ANN401 - a value for any column of the job
) -> list[ExecutionId]:
    """Executions of a job with this callback_url, all finished at `NOW`."""
    job = await make_job(database, **changes)
    await database.execute(_SET_URL, job.job_id, url)
    worker, rows = await make_running(database, number, job=job)
    outcomes = [Outcome(row.execution_id, row.fence, event, result=result) for row in rows]
    await finish(database, worker, outcomes, NOW)
    return sorted(row.execution_id for row in rows)


@asynccontextmanager
async def deliverer(
    database: Database,
    *,
    keyring: Keyring | None = None,
    allow: str = "loopback",
    clock: Clock | None = None,
) -> AsyncIterator[Deliverer]:
    settings = load_settings({"callback_allow": allow})
    made = make_deliverer(Outside(settings, database, clock or SystemClock(), keyring))
    try:
        yield made
    finally:
        await made.close()


async def deliver_due(deliverer: Deliverer, now: datetime = NOW) -> int:
    """One pass, to its end; how many were taken."""
    taken = await deliverer.take(now)
    await asyncio.gather(*(deliverer.deliver(each, stored, now) for each, stored in taken))
    return len(taken)
