"""A whole worker on a real database, life after life, with a runner that runs nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

from foliot.runtime.clock import SystemClock
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.workers import WorkerProfile
from foliot.testing.database import sql
from foliot.testing.fake_runner import FakeRunner
from foliot.testing.rows import ExecutionRow, make_executions, make_job
from foliot.testing.soon import soon
from foliot.worker.life import Orders
from foliot.worker.lines import open_lines
from foliot.worker.service import WorkerService
from foliot.worker.tasks import Succeeded, Task

PROFILE: Final = WorkerProfile("w", "host", "0", ["default"], 4)
HISTORY: Final = sql("select count(*) from foliot.attempts where status = 'SUCCEEDED'")
LIVE: Final = sql("select * from foliot.executions order by id")
WORKERS: Final = sql(
    "select id, status, handlers, started from foliot.workers where capacity > 0"
    " order by registered_at"
)


class SkippingClock(SystemClock):
    """Time goes on as ever, and jumps when it is told to."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.skipped


class Worker:
    """The service under way, and the runner of its present life."""

    def __init__(self, database: Database, answer: Callable[[Task], Any]) -> None:
        self.database = database
        self.orders = Orders()
        self.clock = SkippingClock()
        self.runners: list[FakeRunner] = []
        self.serving: asyncio.Task[None] | None = None
        self._answer = answer

    @property
    def runner(self) -> FakeRunner:
        return self.runners[-1]

    def make_runner(self) -> FakeRunner:
        self.runners.append(FakeRunner(self._answer))
        return self.runner

    async def rows(self) -> list[Any]:
        return await self.database.fetch(WORKERS)


@asynccontextmanager
async def running_worker(
    database: Database,
    database_url: str,
    answer: Callable[[Task], Any] = lambda _: Succeeded(),
    *,
    drain_seconds: float = 30.0,
) -> AsyncIterator[Worker]:
    """Leaving the block waits for its end, and hurries it if it was not told to leave."""
    worker = Worker(database, answer)
    async with (
        open_lines(database_url, ConnectionOptions(), worker.clock) as lines,
        asyncio.TaskGroup() as group,
    ):
        service = WorkerService(
            PROFILE, lines, worker.make_runner, worker.clock, drain_seconds=drain_seconds
        )
        worker.serving = group.create_task(service.run(worker.orders))
        try:
            yield worker
        finally:
            if not worker.orders.leave.is_set():
                worker.orders.leave.set()
                worker.orders.stop.set()
            async with asyncio.timeout(10):
                await worker.serving


async def queue_up(database: Database, number: int) -> list[ExecutionRow]:
    return await make_executions(database, await make_job(database), number)


def never(_: Task) -> None:
    return None


async def under_way(worker: Worker, number: int) -> set[UUID]:
    async def look() -> set[UUID]:
        found = worker.runner.under_way if worker.runners else set()
        return found if len(found) >= number else set()

    return await soon(look)
