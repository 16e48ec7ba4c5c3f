"""How late are instants and their starts while 500 of them come every second?

    python -m bench.precision --per-second 500 --seconds 60

First 500 cron jobs that all fire at every full second, then as many intervals spread over the
second. A real scheduler and a real worker whose handler only tells the time; it has slots for all
of a second's, so that nobody waits for one.
"""

import argparse
from datetime import datetime, timedelta
from typing import Any, Final

import asyncpg
import uvloop

from bench.filling import Crop, sow
from bench.lateness import Lateness, read_lateness, show_lateness
from bench.nodes import ALL_OVER, HANDLERS, NOW, at_work, until, until_time
from bench.servers import load_average, migrated, unlimited
from bench.telling import conclude, run, say
from foliot.core.model import Schedule, ScheduleType
from foliot.testing.engine import Engine

SECOND: Final = timedelta(seconds=1)
EVERY_SECOND: Final = Schedule(ScheduleType.CRON, cron_expression="* * * * * *")
EACH_SECOND: Final = Schedule(ScheduleType.INTERVAL, interval_seconds=1.0)
# The look ahead finds them before they are due; what starts with them is not measured.
BEGIN_AFTER: Final = timedelta(seconds=8)
WARM_UP: Final = timedelta(seconds=3)
END: Final = "update foliot.jobs set status = 'PAUSED'"
SKIPPED: Final = "select coalesce(sum(count), 0)::integer from foliot.skips"


async def measure(per_second: int, seconds: int, spread_seconds: int) -> dict[str, Any]:
    at_once = await measure_one(per_second, seconds, EVERY_SECOND, timedelta(0))
    evenly = await measure_one(per_second, spread_seconds, EACH_SECOND, SECOND / per_second)
    return at_once | {"spread": evenly}


async def measure_one(
    per_second: int, seconds: int, schedule: Schedule, apart: timedelta
) -> dict[str, float]:
    async with migrated() as server, unlimited(server.url) as db:
        engine = Engine(server.url, server.home, HANDLERS)
        with at_work(engine):
            now: datetime = await db.fetchval(NOW)
            first = (now + BEGIN_AFTER).replace(microsecond=0)
            await sow(db, Crop(per_second, schedule, first, apart))
            low = first + WARM_UP
            high = low + seconds * SECOND
            await until_time(db, high + SECOND)
            late, skipped = await end(db, low, high)
    return {
        "per_s": per_second,
        "seconds": seconds,
        **late.figures(),
        "early": late.early,
        "skipped": skipped,
        "missing": per_second * seconds - late.number,
    }


async def end(db: asyncpg.Connection, low: datetime, high: datetime) -> tuple[Lateness, int]:
    await db.execute(END)
    await until(db, ALL_OVER)
    return await read_lateness(db, low, high), await db.fetchval(SKIPPED)


def main() -> int:
    parser = argparse.ArgumentParser(description="lateness at a steady rate of fires")
    parser.add_argument("--per-second", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--spread-seconds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="5 s of 100: does it work?")
    told = parser.parse_args()
    if told.quick:
        told.per_second, told.seconds, told.spread_seconds = 100, 5, 5
    say(f"load before {load_average()}; {told.per_second} fires a second")
    found = uvloop.run(measure(told.per_second, told.seconds, told.spread_seconds))
    show_lateness("all at the full second", found)
    show_lateness("spread over the second", found["spread"])
    return conclude("precision", found)


if __name__ == "__main__":
    run(main)
