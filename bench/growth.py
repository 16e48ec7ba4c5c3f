"""What does a tick cost when there are ten thousand definitions, and what among a million?

    python -m bench.growth --few 10000 --many 1000000

Two servers, one with few and one with many jobs; in both the same number is due, scattered among
the rest. In turns: a look for what is due (as a scheduler does every 150 ms, over all 64 shards),
the fire of it, and a claim of what was fired. Medians of many turns; time is told, not waited for.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Final
from uuid import uuid4

import uvloop

from bench.filling import TABLES, Crop, sow
from bench.foliot_store import QUEUE, FoliotStore
from bench.nodes import NOW
from bench.servers import load_average, migrated, settle, unlimited
from bench.telling import conclude, run, say
from foliot.core.ids import WorkerId
from foliot.core.model import Schedule, ScheduleType
from foliot.scheduler.stage import AT_HAND, AT_HAND_BACK, PAGE
from foliot.store.claiming import ClaimRequest, Look, claim
from foliot.store.database import Database
from foliot.store.firing import fire_batch
from foliot.store.staging import settle_due, stage_page

DAILY: Final = Schedule(ScheduleType.INTERVAL, interval_seconds=86_400.0)
DAY: Final = timedelta(days=1)
TICK: Final = timedelta(milliseconds=150)
DUE_PER_TICK: Final = 50
WARM_UP: Final = 10
LONG_AGO: Final = timedelta(hours=2)
# Ids are random, so the first of them lie anywhere.
MAKE_DUE: Final = """
update foliot.jobs j
   set next_instant = d.at, next_run_at = d.at, created_at = d.at - interval '1 day'
  from (select k.id, $1::timestamptz + row_number() over (order by k.id) * $2::interval as at
          from (select id from foliot.jobs order by id limit $3) k) d
 where j.id = d.id"""
Seconds = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Field:
    """A database with so many definitions, and what was measured there."""

    definitions: int
    database: Database
    worker_id: WorkerId
    lane_id: int
    began: datetime
    seconds: Seconds

    async def turn(self, number: int) -> None:
        now = self.began + number * TICK
        began = time.perf_counter()
        page = await stage_page(
            self.database, range(64), low=now - AT_HAND_BACK, high=now + AT_HAND, limit=PAGE
        )
        looked = time.perf_counter()
        fires = [settle_due(due, now) for due in page.jobs if due.next_run_at <= now]
        report = await fire_batch(self.database, [fire for fire in fires if fire], now=now)
        fired = time.perf_counter()
        request = ClaimRequest(self.worker_id, QUEUE, [self.lane_id], DUE_PER_TICK, Look.NEAR)
        claims = await claim(self.database, request, now)
        claimed = time.perf_counter()
        if not len(report.applied) == len(claims) == DUE_PER_TICK:
            raise RuntimeError(f"{len(report.applied)} fired, {len(claims)} claimed")
        if number > WARM_UP:
            self.seconds["look"].append(looked - began)
            self.seconds["fire"].append(fired - looked)
            self.seconds["tick"].append(fired - began)
            self.seconds["claim"].append(claimed - fired)


@asynccontextmanager
async def field(definitions: int, turns: int) -> AsyncIterator[Field]:
    async with migrated() as server:
        began = time.monotonic()
        async with unlimited(server.url) as db:
            now: datetime = await db.fetchval(NOW)
            first, due = now + LONG_AGO, (turns + WARM_UP) * DUE_PER_TICK
            lane_id = await sow(db, Crop(definitions, DAILY, first, DAY / definitions))
            past = now - LONG_AGO
            await db.execute(MAKE_DUE, past, TICK / DUE_PER_TICK, due)
            worker_id = WorkerId(uuid4())
            await FoliotStore().add_worker(db, worker_id)
        await settle(server, TABLES)
        say(f"{definitions:>12,} definitions made in {time.monotonic() - began:.0f} s")
        async with Database(server.url) as database:
            yield Field(definitions, database, worker_id, lane_id, past, defaultdict(list))


async def measure(sizes: list[int], turns: int) -> list[Field]:
    async with AsyncExitStack() as stack:
        fields = [await stack.enter_async_context(field(size, turns)) for size in sizes]
        for number in range(1, turns + WARM_UP + 1):
            # Who goes first changes, so that a busy moment hits nobody in particular.
            for one in fields if number % 2 else reversed(fields):
                await one.turn(number)
        return fields


def main() -> int:
    parser = argparse.ArgumentParser(description="ticks and claims among few and many definitions")
    parser.add_argument("--few", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=150)
    parser.add_argument("--quick", action="store_true", help="50,000 definitions: does it work?")
    told = parser.parse_args()
    if told.quick:
        told.many, told.turns = 50_000, 50
    say(f"load before {load_average()}")
    few, many = uvloop.run(measure([told.few, told.many], told.turns))
    figures: dict[str, float] = {"few": told.few, "many": told.many, "turns": told.turns}
    for stage in ("look", "fire", "tick", "claim"):
        low, high = (median(one.seconds[stage]) * 1e3 for one in (few, many))
        figures |= {f"{stage}_ms_few": round(low, 2), f"{stage}_ms_many": round(high, 2)}
        figures[f"{stage}_ratio"] = round(high / low, 3)
        say(f"{stage:6} {low:7.2f} ms   {high:7.2f} ms   {high / low:5.2f}")
    return conclude("growth", figures)


if __name__ == "__main__":
    run(main)
