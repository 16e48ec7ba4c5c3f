"""What each role weighs at rest and under load, with all the processes that it has started.

    python -m bench.memory --seconds 15

One scheduler, one worker, one API and their PostgreSQL. At rest: some seconds after their start.
Under load: 500 cron jobs fire every second, and another 1,000 executions are enqueued over HTTP;
the most that was seen. Shared pages count by their part.
"""

import argparse
import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Final

import uvloop

from bench.filling import Crop, sow
from bench.nodes import HANDLERS, NOW, until_ready
from bench.precision import EVERY_SECOND
from bench.processes import family_mb
from bench.servers import load_average, migrated, unlimited
from bench.telling import conclude, run, say
from foliot.testing.engine import Engine
from foliot.testing.visitor import Body, Visitor

REST_SECONDS: Final = 8.0
SAMPLE_SECONDS: Final = 1.0
CRONS: Final = 500
BULK: Final = 100
BULKS_PER_SECOND: Final = 10
# The first look ahead finds the jobs; the load begins when they do.
BEGIN_AFTER: Final = timedelta(seconds=3)
Weights = dict[str, float]


async def measure(seconds: float) -> tuple[Weights, Weights]:
    async with migrated() as server, unlimited(server.url) as db:
        engine = Engine(server.url, server.home, HANDLERS)
        with ExitStack() as stack:
            api = stack.enter_context(engine.api())
            scheduler = stack.enter_context(engine.scheduler())
            worker = stack.enter_context(engine.worker("--concurrency", "200"))
            until_ready([scheduler], [worker])
            pids = {"scheduler": scheduler.pid, "worker": worker.pid, "api": api.pid}
            pids["postgres"] = server.pid or 0
            await asyncio.sleep(REST_SECONDS)
            rest = weigh(pids)
            now: datetime = await db.fetchval(NOW)
            await sow(db, Crop(CRONS, EVERY_SECOND, (now + BEGIN_AFTER).replace(microsecond=0)))
            load = await weigh_under_load(engine.visitor, pids, seconds)
    return rest, load


def weigh(pids: Mapping[str, int]) -> Weights:
    return {f"{role}_mb": round(family_mb(pid), 1) for role, pid in pids.items()}


async def weigh_under_load(visitor: Visitor, pids: Mapping[str, int], seconds: float) -> Weights:
    job = await asyncio.to_thread(visitor.make_job, "on_loop")
    most: Weights = {}
    async with asyncio.TaskGroup() as group:
        enqueuing = group.create_task(enqueue_steadily(visitor, job))
        for _ in range(round(seconds / SAMPLE_SECONDS)):
            await asyncio.sleep(SAMPLE_SECONDS)
            found = weigh(pids)
            most = {role: max(weight, most.get(role, 0.0)) for role, weight in found.items()}
        enqueuing.cancel()
    return most


async def enqueue_steadily(visitor: Visitor, job: Body) -> None:
    body = {"executions": [{"job": job["job_id"]}] * BULK}
    while True:
        await asyncio.to_thread(visitor.call, "POST", "/executions/bulk", body)
        await asyncio.sleep(1 / BULKS_PER_SECOND)


def main() -> int:
    parser = argparse.ArgumentParser(description="memory of each role")
    parser.add_argument("--seconds", type=float, default=15.0, help="of load")
    parser.add_argument("--quick", action="store_true", help="3 s of load: does it work?")
    told = parser.parse_args()
    say(f"load before {load_average()}")
    rest, load = uvloop.run(measure(3.0 if told.quick else told.seconds))
    for role, weight in rest.items():
        say(f"{role.removesuffix('_mb'):10} {weight:7.1f} MB at rest {load[role]:7.1f} MB loaded")
    return conclude("memory", {"rest": rest, "load": load})


if __name__ == "__main__":
    run(main)
