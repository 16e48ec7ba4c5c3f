"""Does it stay as fast as it began? A steady load for minutes, and what the tables look like.

    python -m bench.soak --minutes 10 --rate 5000
    python -m bench.soak --minutes 10 --rate 5000 --pinned    # with a snapshot open all the time

Every second the jobs of that second are fired, in batches, and a worker claims, runs and finishes.
Every ten seconds a line: size of the live table, of its indexes, dead rows, claim times. At the end
the verdicts; the exit status is 1 if one of them is bad. It stops by itself.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles
from typing import Final
from uuid import uuid4

import asyncpg
import uvloop

from bench.contender import DAY, Claimed, Due
from bench.foliot_store import QUEUE, FoliotStore
from bench.servers import fresh_server, load_average
from foliot.worker.claim import Glances

BATCH: Final = 1_000
SAMPLE_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 0.01
# Each job fires once in this many seconds, a day of its own time later each time: so it begins
# long ago.
ROUND_SECONDS: Final = 20
BEGIN_LONG_AGO: Final = """
update foliot.jobs set next_instant = next_instant - interval '10000 days',
                       next_run_at = next_run_at - interval '10000 days'"""
UNLIMITED: Final = {
    "statement_timeout": "0",
    "transaction_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
GROWTH_MOST: Final = 1.25
SLOWDOWN_MOST: Final = 1.10

SIZES: Final = """
select pg_table_size('foliot.executions') as table_bytes,
       pg_indexes_size('foliot.executions') as index_bytes,
       n_dead_tup as dead_rows, n_live_tup as live_rows
  from pg_stat_user_tables where schemaname = 'foliot' and relname = 'executions'"""


@dataclass(frozen=True)
class Sample:
    """Ten seconds of it."""

    second: float
    table_bytes: int
    index_bytes: int
    dead_rows: int
    live_rows: int
    finished: int
    claim_p50_ms: float
    claim_p99_ms: float


@dataclass
class Tally:
    """What happened since the last sample; the worker adds, the sampler takes."""

    claim_seconds: list[float] = field(default_factory=list)
    finished: int = 0

    def take(self) -> tuple[list[float], int]:
        taken = self.claim_seconds, self.finished
        self.claim_seconds, self.finished = [], 0
        return taken


async def fire_steadily(url: str, rate: int, end: float) -> None:
    """The whole of a second's jobs at its beginning, as a clock brings them."""
    store = FoliotStore()
    db = await asyncpg.connect(url, server_settings=UNLIMITED)
    await db.execute(BEGIN_LONG_AGO)
    rows = await db.fetch("select id, next_instant from foliot.jobs order by next_instant")
    due = [Due(*row) for row in rows]
    second, began = 0, time.monotonic()
    while time.monotonic() < end:
        start = second % ROUND_SECONDS * rate
        for first in range(start, start + rate, BATCH):
            part = sorted(due[first : min(first + BATCH, start + rate)])
            await store.fire(part).fetch(db)
            due[first : first + len(part)] = [Due(job, at + DAY) for job, at in part]
        second += 1
        await asyncio.sleep(max(0.0, began + second - time.monotonic()))
    await db.close()


async def work_steadily(url: str, tally: Tally, end: float) -> None:
    store, worker_id = FoliotStore(), uuid4()
    claiming, finishing = await asyncpg.connect(url), await asyncpg.connect(url)
    await store.add_worker(claiming, worker_id)
    glances = Glances()
    while (now := time.monotonic()) < end:
        look = glances.choose(QUEUE, now)
        rows = await store.claim_looking(worker_id, BATCH, look).fetch(claiming)
        glances.done(QUEUE, look, now, time.monotonic())
        if rows:
            tally.claim_seconds.append(time.monotonic() - now)
            claimed = [Claimed(*row) for row in rows]
            await store.finish(worker_id, claimed).fetch(finishing)
            tally.finished += len(claimed)
        else:
            await asyncio.sleep(IDLE_SECONDS)
    await claiming.close()
    await finishing.close()


async def watch(url: str, tally: Tally, began: float, end: float) -> list[Sample]:
    db, samples = await asyncpg.connect(url), list[Sample]()
    while time.monotonic() + SAMPLE_SECONDS <= end + 1:
        await asyncio.sleep(SAMPLE_SECONDS)
        sizes = (await db.fetch(SIZES))[0]
        seconds, finished = tally.take()
        if len(seconds) < 2:
            raise RuntimeError("nothing was claimed for ten seconds")
        samples.append(
            Sample(
                second=round(time.monotonic() - began),
                **dict(sizes),
                finished=finished,
                claim_p50_ms=median(seconds) * 1e3,
                claim_p99_ms=quantiles(seconds, n=100)[98] * 1e3,
            )
        )
        show(samples[-1])
    await db.close()
    return samples


@asynccontextmanager
async def pinned(url: str, *, wanted: bool) -> AsyncIterator[None]:
    """A transaction that keeps every dead row from being removed."""
    if not wanted:
        yield
        return
    db = await asyncpg.connect(url, server_settings=UNLIMITED)
    async with db.transaction(isolation="repeatable_read"):
        await db.fetch("select from foliot.executions limit 1")
        yield
    await db.close()


async def soak(minutes: float, rate: int, *, pin: bool) -> list[Sample]:
    async with fresh_server(FoliotStore(), rate * ROUND_SECONDS, fill=False) as url:
        async with pinned(url, wanted=pin), asyncio.TaskGroup() as group:
            tally, began = Tally(), time.monotonic()
            end = began + minutes * 60
            group.create_task(fire_steadily(url, rate, end))
            group.create_task(work_steadily(url, tally, end))
            watching = group.create_task(watch(url, tally, began, end))
        return watching.result()


def verdicts(samples: list[Sample], rate: int, *, pin: bool) -> dict[str, tuple[float, bool]]:
    """By name: the number, and whether it is good. The first minute is the measure."""
    minute = max(1, round(60 / SAMPLE_SECONDS))
    first, last = samples[:minute], samples[-minute:]
    bytes_first = max(one.table_bytes + one.index_bytes for one in first)
    growth = max(one.table_bytes + one.index_bytes for one in last) / bytes_first
    slowdown = median(one.claim_p50_ms for one in last) / median(one.claim_p50_ms for one in first)
    tail = median(one.claim_p99_ms for one in last) / median(one.claim_p99_ms for one in first)
    kept = sum(one.finished for one in samples) / (SAMPLE_SECONDS * len(samples) * rate)
    return {
        # Under a pinned snapshot nothing can be removed, so growth is not held against it.
        "growth after the first minute": (growth, pin or growth <= GROWTH_MOST),
        "claim p50, last to first minute": (slowdown, slowdown <= SLOWDOWN_MOST),
        "claim p99, last to first minute": (tail, tail <= 2 * SLOWDOWN_MOST),
        "finished of what was asked": (kept, kept >= 0.95),
    }


def show(sample: Sample) -> None:
    say(
        f"{sample.second:>5.0f} s  live {sample.live_rows:>6,}  dead {sample.dead_rows:>9,}"
        f"  table {sample.table_bytes / 1e6:>7.1f} MB  indexes {sample.index_bytes / 1e6:>7.1f} MB"
        f"  finished {sample.finished / SAMPLE_SECONDS:>7,.0f}/s"
        f"  claim p50 {sample.claim_p50_ms:>6.1f} ms  p99 {sample.claim_p99_ms:>6.1f} ms"
        f"  load {load_average()}"
    )


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description="minutes of a steady load")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=5_000, help="executions per second")
    parser.add_argument("--pinned", action="store_true", help="keep a snapshot open all the time")
    options = parser.parse_args()
    samples = uvloop.run(soak(options.minutes, options.rate, pin=options.pinned))
    found = verdicts(samples, options.rate, pin=options.pinned)
    for name, (number, good) in found.items():
        say(f"{'ok ' if good else 'BAD'} {name}: {number:.2f}")
    say(json.dumps([asdict(sample) for sample in samples]))
    return 0 if all(good for _, good in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
