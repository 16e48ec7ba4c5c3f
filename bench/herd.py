"""Many jobs due in one and the same second: how long until the last of them has started?

    python -m bench.herd --jobs 50000

Cron jobs of one instant, put into the tables beforehand; a real scheduler and a real worker whose
handler only tells the time. Measured from the instant, by what history says afterwards.
"""

import argparse
import asyncio
from datetime import datetime, timedelta
from typing import Any, Final

import asyncpg
import uvloop

from bench.filling import TABLES, Crop, sow
from bench.lateness import read_lateness, show_lateness
from bench.nodes import ALL_OVER, HANDLERS, NOW, at_work, until
from bench.processes import family_cpu_seconds
from bench.servers import load_average, migrated, settle, unlimited
from bench.telling import conclude, run, say
from foliot.core.model import Schedule, ScheduleType
from foliot.embedded import EmbeddedServer
from foliot.testing.commands import FoliotCommand
from foliot.testing.engine import Engine

# To put the jobs into the tables, to start the processes, and to look ahead.
FILLED_PER_SECOND: Final = 8_000
READY_SECONDS: Final = 20.0
AHEAD_SECONDS: Final = 7.0
ALL_FIRED: Final = "select not exists (select from foliot.jobs where next_instant <= $1)"


class Taken:
    """What the herd takes of the processors, by role, from when this is made."""

    def __init__(
        self,
        schedulers: list[FoliotCommand],
        workers: list[FoliotCommand],
        server: EmbeddedServer,
    ) -> None:
        self._pids = {
            "schedulers": [node.pid for node in schedulers],
            "workers": [node.pid for node in workers],
            "postgres": [server.pid or 0],
        }
        self._before = self._read()

    def cpu_seconds(self) -> dict[str, float]:
        return {role: round(now - self._before[role], 1) for role, now in self._read().items()}

    def _read(self) -> dict[str, float]:
        return {role: sum(map(family_cpu_seconds, pids)) for role, pids in self._pids.items()}


async def measure(jobs: int, schedulers: int, workers: int) -> dict[str, Any]:
    async with migrated() as server, unlimited(server.url) as db:
        instant = await fill(server, db, jobs)
        engine = Engine(server.url, server.home, HANDLERS)
        with at_work(engine, schedulers=schedulers, workers=workers) as nodes:
            left = instant - await db.fetchval(NOW)
            if left < timedelta(seconds=AHEAD_SECONDS):
                raise SystemExit(f"the preparation took too long: {left} are left")
            await asyncio.sleep(left.total_seconds())
            taken = Taken(nodes[:schedulers], nodes[schedulers:], server)
            await until(db, ALL_FIRED, instant)
            await until(db, ALL_OVER)
            cpu = taken.cpu_seconds()
        late = await read_lateness(db, instant, instant + timedelta(seconds=1))
    return {
        "jobs": jobs,
        "schedulers": schedulers,
        "workers": workers,
        "last_fire_s": round(late.fired[2], 2),
        "last_claim_s": round(late.claimed[2], 2),
        "last_start_s": round(late.started[2], 2),
        **late.figures(),
        "early": late.early,
        "missing": jobs - late.number,
        "cpu_s": cpu,
    }


async def fill(server: EmbeddedServer, db: asyncpg.Connection, jobs: int) -> datetime:
    """The instant of all of them."""
    now: datetime = await db.fetchval(NOW)
    ahead = timedelta(seconds=jobs / FILLED_PER_SECOND + READY_SECONDS)
    instant = (now + ahead).replace(microsecond=0)
    expression = f"{instant.second} {instant.minute} {instant.hour} * * *"
    await sow(db, Crop(jobs, Schedule(ScheduleType.CRON, cron_expression=expression), instant))
    await settle(server, TABLES)
    return instant


def main() -> int:
    parser = argparse.ArgumentParser(description="jobs that are due in the same second")
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--schedulers", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="2,000 jobs: does it work?")
    told = parser.parse_args()
    before = load_average()
    jobs = 2_000 if told.quick else told.jobs
    found = uvloop.run(measure(jobs, told.schedulers, told.workers))
    say(f"load before {before}; {jobs:,} jobs of one instant")
    show_lateness("from the instant", found)
    return conclude("herd", found)


if __name__ == "__main__":
    run(main)
