"""A worker in pieces, on a real database: each trade is done when the test says so."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import asyncpg

from foliot.core.ids import WorkerId
from foliot.runtime.chance import fresh_id
from foliot.runtime.clock import SystemClock
from foliot.store.database import Database
from foliot.store.workers import WorkerProfile, register
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.fake_runner import FakeRunner
from foliot.transport.port import SILENCE, Transport
from foliot.worker.attempts import Attempts, Desk
from foliot.worker.claim import Claimer, ClaimReport
from foliot.worker.heartbeat import Heartbeat
from foliot.worker.waking import Ear

PROFILE: Final = WorkerProfile("w", "host", "0", ["default"], 10, handlers=["work"])
LIVE: Final = sql("select * from foliot.executions order by rank, id")
HISTORY: Final = sql("select * from foliot.attempts order by id, fence")
_SYSTEM: Final = SystemClock()


@dataclass(slots=True)
class Bench:
    """One worker in pieces."""

    database: Database
    worker_id: WorkerId
    runner: FakeRunner
    attempts: Attempts
    claimer: Claimer
    heartbeat: Heartbeat
    clock: ManualClock
    tasks: set[asyncio.Task[None]]

    async def work(self) -> ClaimReport:
        """Claim, run what ends at once, write."""
        report = await self.claimer.run_once()
        await self.settle()
        return report

    async def settle(self) -> None:
        """Let what can end do so, and write it."""
        for _ in range(5):
            await _SYSTEM.sleep(0)
        await self.attempts.finisher.run_once()

    async def live(self) -> list[asyncpg.Record]:
        return await self.database.fetch(LIVE)

    async def history(self) -> list[asyncpg.Record]:
        return await self.database.fetch(HISTORY)


@asynccontextmanager
async def worker_bench(
    database: Database,
    runner: FakeRunner | None = None,
    transport: Transport = SILENCE,
    **changes: Any,  # noqa: ANN401 - a profile's
) -> AsyncIterator[Bench]:
    """A registered worker, with any value of its profile changed."""
    profile = replace(PROFILE, **changes)
    worker_id, clock, runner = WorkerId(fresh_id()), ManualClock(), runner or FakeRunner()
    await register(database, worker_id, profile)
    tasks: set[asyncio.Task[None]] = set()

    def spawn(work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    desk = Desk(worker_id, profile.capacity, database, database, clock, transport)
    attempts = Attempts(desk, runner, spawn)
    claimer = Claimer(database, worker_id, profile, attempts, clock, Ear(transport))
    heartbeat = Heartbeat(database, worker_id, attempts)
    yield Bench(database, worker_id, runner, attempts, claimer, heartbeat, clock, tasks)
    for task in tuple(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
