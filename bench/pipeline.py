"""The stages at once, as in a cluster: a scheduler process and some worker processes.

    python -m bench.pipeline --jobs 50000 --repeat 3      # 1, 2 and 4 workers, beside the baseline

The clock runs from the moment all of them are connected until the last finish is written. A worker
claims on one connection and finishes on another, and runs a handler that does nothing.
"""

import argparse
import asyncio
import multiprocessing
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from statistics import median
from typing import Any, Final
from uuid import uuid4

import asyncpg
import uvloop

from bench.baseline import Baseline
from bench.contender import LONG_AGO, RESULT, Claimed, Contender, Due
from bench.foliot_store import FoliotStore
from bench.servers import fresh_server, load_average
from bench.stages import raise_floor
from bench.telling import conclude, run, say

WORKERS: Final = (1, 2, 4)
BATCH: Final = 1_000
IDLE_SECONDS: Final = 0.02
UNFINISHED_BATCHES: Final = 4
# No run of a sane size takes longer; a process that died must not leave the others waiting.
LIMIT_SECONDS: Final = 300.0


@dataclass(frozen=True)
class Course:
    """What every process of a run is told."""

    contender: Contender
    url: str
    jobs: int
    batch: int
    claimed: "Synchronized[int]"
    gate: Barrier  # passed twice: when all are connected, when all are done


Role = Callable[[Course], Coroutine[Any, Any, None]]


async def measure_pipeline(contender: Contender, jobs: int, batch: int, workers: int) -> float:
    """Executions per second from due jobs to history."""
    async with fresh_server(contender, jobs, fill=False) as url:
        return await _run(contender, url, jobs, batch, [schedule, *[work] * workers])


async def measure_drain(contender: Contender, jobs: int, batch: int, workers: int) -> float:
    """Executions per second from a full queue to history."""
    async with fresh_server(contender, jobs, fill=True) as url:
        return await _run(contender, url, jobs, batch, [work] * workers)


async def _run(
    contender: Contender, url: str, jobs: int, batch: int, roles: Sequence[Role]
) -> float:
    context = multiprocessing.get_context("spawn")
    claimed, gate = context.Value("q", 0), context.Barrier(len(roles) + 1)
    course = Course(contender, url, jobs, batch, claimed, gate)
    seconds = await asyncio.to_thread(_time, context, course, roles)
    db = await asyncpg.connect(url)
    live, history = await contender.count(db)
    await db.close()
    if (live, history) != (0, jobs):
        raise RuntimeError(f"{contender.name}: {live} rows live, {history} of {jobs} in history")
    return jobs / seconds


def _time(context: SpawnContext, course: Course, roles: Sequence[Role]) -> float:
    processes = [context.Process(target=play, args=(role, course)) for role in roles]
    for process in processes:
        process.start()
    try:
        course.gate.wait(LIMIT_SECONDS)
        began = time.perf_counter()
        course.gate.wait(LIMIT_SECONDS)
        return time.perf_counter() - began
    finally:
        for process in processes:
            process.join(10)
            process.kill()


def play(role: Role, course: Course) -> None:
    """The whole life of a process; one that fails lets nobody wait for it."""
    try:
        uvloop.run(role(course))
        course.gate.wait(LIMIT_SECONDS)
    except BaseException:
        course.gate.abort()
        raise


async def schedule(course: Course) -> None:
    """Fire whatever is due, oldest first, until nothing is."""
    db = await asyncpg.connect(course.url)
    low = LONG_AGO
    course.gate.wait(LIMIT_SECONDS)
    while rows := await course.contender.read_due(low, course.batch).fetch(db):
        due = [Due(*row) for row in rows]
        low = due[0].instant
        await course.contender.fire(sorted(due)).fetch(db)
    await db.close()


async def work(course: Course) -> None:
    """Claim, run and finish until every job of the run is claimed by somebody."""
    claiming, finishing = await asyncpg.connect(course.url), await asyncpg.connect(course.url)
    worker_id, floor = uuid4(), 0.0
    await course.contender.add_worker(claiming, worker_id)
    batches: asyncio.Queue[list[Claimed]] = asyncio.Queue(UNFINISHED_BATCHES)

    async def finish() -> None:
        while batch := await batches.get():
            await course.contender.finish(worker_id, batch).fetch(finishing)

    course.gate.wait(LIMIT_SECONDS)
    async with asyncio.TaskGroup() as group:
        group.create_task(finish())
        while course.claimed.value < course.jobs:
            rows = await course.contender.claim(worker_id, course.batch, floor).fetch(claiming)
            if not rows:
                await asyncio.sleep(IDLE_SECONDS)
                continue
            claimed = [Claimed(*row) for row in rows]
            floor = raise_floor(floor, claimed)
            await asyncio.gather(*(handle() for _ in claimed))
            await batches.put(claimed)
            with course.claimed.get_lock():
                course.claimed.value += len(claimed)
        await batches.put([])
    await claiming.close()
    await finishing.close()


async def handle() -> str:
    """The job itself: as little as there can be."""
    return RESULT


async def measure_all(jobs: int, repeat: int) -> dict[int, dict[str, list[float]]]:
    """By workers and contender, in turns: a machine that is busy is busy for both."""
    found: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for turn in range(repeat):
        contenders: list[Contender] = [FoliotStore(), Baseline()]
        for workers in WORKERS:
            # Who goes first changes, so that a warming or tiring machine favours nobody.
            for contender in contenders if turn % 2 else reversed(contenders):
                rate = await measure_pipeline(contender, jobs, BATCH, workers)
                found[workers][contender.name].append(rate)
                say(f"turn {turn + 1}, {workers} w, {contender.name:8} {rate:8,.0f}/s")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="executions per second, from due to history")
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="5,000 jobs, once: does it work?")
    told = parser.parse_args()
    if told.quick:
        told.jobs, told.repeat = 5_000, 1
    say(f"load before {load_average()}")
    by_workers = {}
    for workers, rates in asyncio.run(measure_all(told.jobs, told.repeat)).items():
        ours, bare = median(rates["foliot"]), median(rates["baseline"])
        by_workers[str(workers)] = {
            "per_s": round(ours),
            "baseline_per_s": round(bare),
            "ratio_baseline": round(ours / bare, 3),
        }
    counts = {"jobs": told.jobs, "turns": told.repeat}
    return conclude("pipeline", by_workers["1"] | counts | {"workers": by_workers})


if __name__ == "__main__":
    run(main)
