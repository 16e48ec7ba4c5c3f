"""Ten thousand executions that run at one moment, on one machine.

    python -m bench.running --count 10000 --workers 1

Async handlers that wait at a gate. It opens only when the database has said that all of them are
running at once and their worker that all have begun; then all must succeed. Meanwhile: how old the
workers' signs of life become, and what the workers weigh.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import asyncpg
import uvloop

from bench.nodes import ALL_OVER, LAST_END, until, until_ready
from bench.processes import family_mb
from bench.servers import load_average, migrated, unlimited
from bench.telling import conclude, run, say
from foliot.core.ids import JobId
from foliot.core.model import HandlerTarget, Job, Schedule, ScheduleType
from foliot.embedded import EmbeddedServer
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.jobs import create
from foliot.store.tenants import DEFAULT_TENANT
from foliot.testing.commands import FoliotCommand
from foliot.testing.engine import Engine

HANDLERS: Final = Path(__file__).with_name("waiting_handlers.py")
BULK: Final = 1000
LOOK_SECONDS: Final = 0.25
# Long enough for the workers to beat a few times while all of it runs.
HOLD_SECONDS: Final = 12.0
PATIENCE_SECONDS: Final = 90.0
SEEN: Final = """
select (select count(*) from foliot.executions where status = 'RUNNING') as claimed,
       (select coalesce(sum(cardinality(started)), 0) from foliot.workers) as begun,
       (select extract(epoch from clock_timestamp() - min(last_heartbeat_at))::float8
          from foliot.workers where capacity > 0 and status = 'ACTIVE') as beat_age"""
ENDS: Final = """
select count(*) filter (where status = 'SUCCEEDED' and final) as succeeded,
       count(*) filter (where fence > 1) as handed_back
  from foliot.attempts"""


@dataclass
class Seen:
    """What the database and the processes said while it went on."""

    at_once: int = 0
    seconds_to_all: float | None = None
    beat_age: float = 0.0
    workers_mb: float = 0.0

    async def watch(
        self, db: asyncpg.Connection, workers: Sequence[FoliotCommand], count: int, hold: float
    ) -> None:
        """Until all have run at once for so long, or hope is lost."""
        began = time.monotonic()
        while (passed := time.monotonic() - began) < PATIENCE_SECONDS:
            row = (await db.fetch(SEEN))[0]
            self.at_once = max(self.at_once, min(row["claimed"], row["begun"]))
            self.beat_age = max(self.beat_age, row["beat_age"] or 0.0)
            if self.seconds_to_all is None and self.at_once >= count:
                self.seconds_to_all = passed
            if self.seconds_to_all is not None and passed > self.seconds_to_all + hold:
                break
            await asyncio.sleep(LOOK_SECONDS)
        self.workers_mb = weigh(workers)


async def measure(count: int, workers: int, hold_seconds: float) -> dict[str, float | None]:
    async with migrated() as server, unlimited(server.url) as db:
        with ExitStack() as stack:
            gate = server.home / "gate"
            stack.callback(gate.unlink, missing_ok=True)
            engine = Engine(server.url, server.home, HANDLERS)
            options = ("--concurrency", str(-(-count // workers)))
            scheduler = stack.enter_context(engine.scheduler())
            hands = [
                stack.enter_context(engine.worker(*options, BENCH_GATE=str(gate)))
                for _ in range(workers)
            ]
            until_ready([scheduler], hands)
            at_rest, seen = weigh(hands), Seen()
            await enqueue_all(server, count)
            await seen.watch(db, hands, count, hold_seconds)
            say(f"{seen.at_once:,} at once; the gate opens")
            gate.touch()
            opened = time.time()  # by the clock that the database has too
            await until(db, ALL_OVER)
            seconds_to_end = await db.fetchval(LAST_END) - opened
        ends = (await db.fetch(ENDS))[0]
    return {
        "count": count,
        "workers": workers,
        "at_once": seen.at_once,
        "not_at_once": count - seen.at_once,
        "not_succeeded": count - ends["succeeded"],
        "handed_back": ends["handed_back"],
        "seconds_to_all": seen.seconds_to_all and round(seen.seconds_to_all, 1),
        "seconds_to_end": round(seconds_to_end, 1),
        "beat_age_s_most": round(seen.beat_age, 1),
        "workers_mb_rest": round(at_rest, 1),
        "workers_mb": round(seen.workers_mb, 1),
        "kb_each": round((seen.workers_mb - at_rest) * 1e3 / count, 1),
    }


def weigh(workers: Sequence[FoliotCommand]) -> float:
    return sum(family_mb(worker.pid) for worker in workers)


async def enqueue_all(server: EmbeddedServer, count: int) -> None:
    target, manual = HandlerTarget("wait_at_gate"), Schedule(ScheduleType.MANUAL)
    job = Job(JobId(uuid4()), DEFAULT_TENANT, "waiting", manual, target)
    async with Database(server.url) as database:
        made = await create(database, job, changed_by="bench")
        for start in range(0, count, BULK):
            request = Request(DEFAULT_TENANT, "bench", str(uuid4()), made.created_at)
            await enqueue(database, request, [Wanted(job.job_id)] * min(BULK, count - start))


def main() -> int:
    parser = argparse.ArgumentParser(description="executions that run at one moment")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--hold-seconds", type=float, default=HOLD_SECONDS)
    parser.add_argument("--quick", action="store_true", help="500, held 1 s: does it work?")
    told = parser.parse_args()
    if told.quick:
        told.count, told.hold_seconds = 500, 1.0
    say(f"load before {load_average()}")
    found = uvloop.run(measure(told.count, told.workers, told.hold_seconds))
    return conclude("running", found)


if __name__ == "__main__":
    run(main)
