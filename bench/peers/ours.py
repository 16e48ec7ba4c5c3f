"""Our own entrants: a real `foliot worker run`, and the store without a worker.

The worker runs a handler that does nothing on its shared loop, a thousand at once, in a process of
handlers beside it. Each execution is claimed, read, handed over, run, finished and kept as history.
Its clock begins at the worker's registration, and what it has to start after that counts; it ends
with the last end in history.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from bench.filling import TABLES
from bench.foliot_store import FoliotStore
from bench.nodes import ALL_OVER, HANDLERS, LAST_END, until
from bench.peers.entrants import Rates
from bench.pipeline import measure_drain
from bench.servers import migrated, settle, unlimited
from foliot.core.ids import JobId
from foliot.core.model import HandlerTarget, Job, Schedule, ScheduleType
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.jobs import create
from foliot.store.tenants import DEFAULT_TENANT
from foliot.testing.database import sql
from foliot.testing.engine import Engine

HANDLER: Final = "on_loop"
AT_ONCE: Final = 1000
BATCH: Final = 1000
KEEPS: Final = "every attempt, with its times and its result"

NOW: Final = sql("select statement_timestamp()")
BEGAN: Final = """
select extract(epoch from min(registered_at))::float8 from foliot.workers where capacity > 0"""
ENDS: Final = "select count(*) from foliot.attempts where status = 'SUCCEEDED'"


@dataclass(frozen=True)
class OurWorker:
    jobs: int = 60_000
    name: str = "foliot"
    keeps: str = KEEPS

    async def prepare(self) -> None:
        """It is here."""

    async def run(self, part: int = 1) -> Rates:
        jobs = self.jobs // part
        async with migrated() as server, unlimited(server.url) as db:
            filled = await self._fill(server.url, jobs)
            await settle(server, TABLES)
            engine = Engine(server.url, Path(), HANDLERS)
            with engine.worker("--concurrency", str(AT_ONCE)):
                await until(db, ALL_OVER)
            if (ends := await db.fetchval(ENDS)) != jobs:
                raise RuntimeError(f"{ends} of {jobs} have succeeded")
            seconds = await db.fetchval(LAST_END) - await db.fetchval(BEGAN)
            return Rates(filled, jobs / seconds)

    async def _fill(self, url: str, jobs: int) -> float:
        manual, target = Schedule(ScheduleType.MANUAL), HandlerTarget(HANDLER)
        job = Job(JobId(uuid4()), DEFAULT_TENANT, "noop", manual, target)
        async with Database(url) as database:
            await create(database, job, changed_by="bench")
            now = await database.fetch_value(NOW)
            began = time.perf_counter()
            for first in range(0, jobs, BATCH):
                request = Request(DEFAULT_TENANT, "enqueue", str(first), now)
                wanted = [Wanted(job.job_id)] * min(BATCH, jobs - first)
                await enqueue(database, request, wanted)
            return jobs / (time.perf_counter() - began)


@dataclass(frozen=True)
class OurStore:
    """Claims and finishes in a process that runs nothing: what a worker could reach at the most."""

    jobs: int = 100_000
    name: str = "foliot's store alone"
    keeps: str = KEEPS

    async def prepare(self) -> None:
        """It is here."""

    async def run(self, part: int = 1) -> Rates:
        jobs = self.jobs // part
        return Rates(None, await measure_drain(FoliotStore(), jobs, BATCH, workers=1))
