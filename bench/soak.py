"""Does it stay as fast as it began? A steady load for minutes, and what the tables look like.

    python -m bench.soak --minutes 10 --rate 5000
    python -m bench.soak --minutes 10 --rate 5000 --pinned    # with a snapshot open all the time

Every second the jobs of that second are fired, in batches, and a worker claims, runs and finishes.
Every ten seconds a line: size of the live table, of its indexes, dead rows, claim times. At the end
the last minute beside the first; the exit status is 1 if it falls short. It stops by itself.
"""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Final
from uuid import uuid4

import asyncpg
import uvloop

from bench.contender import DAY, Claimed, Due
from bench.foliot_store import QUEUE, FoliotStore
from bench.servers import UNLIMITED, fresh_server, load_average
from bench.telling import conclude, run, say
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


def figures(samples: list[Sample], rate: int) -> dict[str, float]:
    """The first minute is the measure of the last."""
    minute = max(1, round(60 / SAMPLE_SECONDS))
    first, last = samples[:minute], samples[-minute:]
    p50 = [median(one.claim_p50_ms for one in part) for part in (first, last)]
    p99 = [median(one.claim_p99_ms for one in part) for part in (first, last)]
    size = [max(one.table_bytes + one.index_bytes for one in part) for part in (first, last)]
    return {
        "asked_per_s": rate,
        "seconds": samples[-1].second,
        "kept": round(_kept(samples, rate), 3),
        "kept_last_minute": round(_kept(last, rate), 3),
        "claim_ms_p50_first": round(p50[0], 1),
        "claim_ms_p50_last": round(p50[1], 1),
        "claim_p50_ratio": round(p50[1] / p50[0], 3),
        "claim_p99_ratio": round(p99[1] / p99[0], 3),
        # Under a pinned snapshot nothing can be removed, so it is not held against it.
        "bytes_ratio": round(size[1] / size[0], 2),
    }


def _kept(samples: list[Sample], rate: int) -> float:
    return sum(one.finished for one in samples) / (SAMPLE_SECONDS * len(samples) * rate)


def show(sample: Sample) -> None:
    say(
        f"{sample.second:>5.0f} s  live {sample.live_rows:>6,}  dead {sample.dead_rows:>9,}"
        f"  table {sample.table_bytes / 1e6:>7.1f} MB  indexes {sample.index_bytes / 1e6:>7.1f} MB"
        f"  finished {sample.finished / SAMPLE_SECONDS:>7,.0f}/s"
        f"  claim p50 {sample.claim_p50_ms:>6.1f} ms  p99 {sample.claim_p99_ms:>6.1f} ms"
        f"  load {load_average()}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="minutes of a steady load")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=5_000, help="executions per second")
    parser.add_argument("--pinned", action="store_true", help="keep a snapshot open all the time")
    parser.add_argument("--quick", action="store_true", help="half a minute: does it work?")
    options = parser.parse_args()
    if options.quick:
        options.minutes = 0.5
    samples = uvloop.run(soak(options.minutes, options.rate, pin=options.pinned))
    return conclude("pinned" if options.pinned else "soak", figures(samples, options.rate))


if __name__ == "__main__":
    run(main)
