"""Does a tenant that floods delay itself alone? Waits of twenty small tenants, with and without it.

    python -m bench.fairness --flood 100000 --seconds 20

A real worker serves one queue; each attempt takes 5 ms, 16 at once. Small tenants send one
execution each in turn, 40 in a second. First alone; then while one tenant has 100,000 executions
waiting. A wait is from when it could be claimed until it was, and until its handler began. At the
end the verdict: the 99th percentile is at most twice that of being alone, or 250 ms; the exit
status is 1 if not.
"""

import argparse
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final
from uuid import uuid4

import asyncpg
import uvloop

from bench.nodes import HANDLERS, at_work
from bench.servers import load_average, migrated, unlimited
from bench.telling import run, say
from foliot.core.ids import JobId, TenantId
from foliot.core.model import HandlerTarget, Job, Schedule, ScheduleType
from foliot.runtime.clock import SystemClock
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.jobs import create
from foliot.store.queues import pause_queue, resume_queue
from foliot.testing.engine import Engine

SMALL: Final = 20
PER_SECOND: Final = 40
NAP_SECONDS: Final = 0.005
BULK: Final = 5000
BOUND_SECONDS: Final = 0.25

ADD_TENANT: Final = """
insert into foliot.tenants (id, name, tier, weight, created_at)
values ($1::uuid, $1::uuid::text, 'free', 1, now())"""
WAITS: Final = """
select extract(epoch from a.claimed_at - a.queued_at)::float8,
       extract(epoch from a.started_at - a.queued_at)::float8
  from foliot.attempts a where a.tenant_id = any($1) and a.labels ->> 'phase' = $2"""
LEFT: Final = """
select count(*) from foliot.executions where tenant_id = $1 and status <> 'RUNNING'"""


@dataclass(frozen=True)
class Waits:
    """In milliseconds: half of them, and one in a hundred, took longer."""

    number: int
    claim_p50: float
    claim_p99: float
    start_p99: float

    def __str__(self) -> str:
        return (
            f"{self.number:6} executions, claimed after {self.claim_p50:6.1f} ms (median),"
            f" {self.claim_p99:6.1f} ms (p99); begun after {self.start_p99:6.1f} ms (p99)"
        )


class Ground:
    def __init__(self, database: Database, db: asyncpg.Connection) -> None:
        self.database, self.db, self.clock = database, db, SystemClock()
        self.jobs: dict[TenantId, JobId] = {}

    async def add_tenant(self) -> TenantId:
        tenant = TenantId(uuid4())
        await self.db.execute(ADD_TENANT, tenant)
        job = Job(
            JobId(uuid4()), tenant, "nap", Schedule(ScheduleType.MANUAL), HandlerTarget("nap")
        )
        await create(self.database, job, changed_by="bench")
        self.jobs[tenant] = job.job_id
        return tenant

    async def send(self, tenant: TenantId, number: int, phase: str) -> None:
        wanted = Wanted(
            self.jobs[tenant], payload={"seconds": NAP_SECONDS}, labels={"phase": phase}
        )
        request = Request(tenant, "bench", str(uuid4()), await self.db.fetchval("select now()"))
        await enqueue(self.database, request, [wanted] * number)

    async def send_evenly(self, tenants: list[TenantId], seconds: float, phase: str) -> Waits:
        began = self.clock.monotonic()
        for number in range(int(seconds * PER_SECOND)):
            pause = began + number / PER_SECOND - self.clock.monotonic()
            await self.clock.sleep(max(0.0, pause))
            await self.send(tenants[number % len(tenants)], 1, phase)
        number = int(seconds * PER_SECOND)
        while len(rows := await self.db.fetch(WAITS, tenants, phase)) < number:
            await self.clock.sleep(0.1)
        claims = [row[0] * 1000 for row in rows]
        starts = [row[1] * 1000 for row in rows]
        return Waits(
            number, median(claims), quantiles(claims, n=100)[98], quantiles(starts, n=100)[98]
        )


async def measure(ground: Ground, flood: int, seconds: float) -> bool:
    small = [await ground.add_tenant() for _ in range(SMALL)]
    big = await ground.add_tenant()
    await ground.send_evenly(small, 3, "warm")
    alone = await ground.send_evenly(small, seconds, "alone")
    say(f"alone:        {alone}")
    await pause_queue(ground.database, "default")
    for start in range(0, flood, BULK):
        await ground.send(big, min(BULK, flood - start), "flood")
    await resume_queue(ground.database, "default")
    while (waiting := await ground.db.fetchval(LEFT, big)) == flood:
        await ground.clock.sleep(0.05)
    beside = await ground.send_evenly(small, seconds, "beside")
    left = await ground.db.fetchval(LEFT, big)
    say(f"beside flood: {beside}")
    say(f"the flood: {waiting} waiting, {left} of them still at the end")
    bound = max(2 * alone.start_p99, BOUND_SECONDS * 1000)
    fair = beside.start_p99 <= bound and left > 0
    say(f"{'fair' if fair else 'NOT FAIR'}: the bound is {bound:.0f} ms")
    return fair


async def measure_all(flood: int, seconds: float) -> bool:
    async with migrated() as server, unlimited(server.url) as db:
        engine = Engine(server.url, server.home, HANDLERS)
        with at_work(engine, schedulers=0, concurrency=16):
            async with Database(server.url) as database:
                fair = await measure(Ground(database, db), flood, seconds)
    say(f"load average {load_average()}")
    return fair


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flood", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    told = parser.parse_args()
    return 0 if uvloop.run(measure_all(told.flood, told.seconds)) else 1


if __name__ == "__main__":
    run(main)
