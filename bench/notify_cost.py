"""What a notification costs those who commit: none, one in each commit, or one after several.

    python -m bench.notify_cost --seconds 3

Writers insert batches into a table with two indexes, each batch a commit with fsync on; twenty
connections listen. `inside` notifies in the batch's own transaction, which holds a lock of the
whole server until its commit is on disk; `after` does so from another connection, in transactions
that write nothing, one for all that was committed within ten milliseconds.
"""

import argparse
import asyncio
import time
from statistics import median
from typing import Final

import asyncpg
import uvloop

from bench.servers import embedded, load_average
from bench.telling import run, say

LISTENERS: Final = 20
ROUNDS: Final = 3
SPACING_SECONDS: Final = 0.01
WAYS: Final = ("none", "inside", "after")
# Writers, and rows of each batch: a request each, and the batches of schedulers at full speed.
LOADS: Final = ((8, 1), (4, 1000))
MAKE: Final = """
create table rows (id uuid primary key, rank float8, payload text);
create index on rows (rank);
create function put(many integer, tell text) returns void language plpgsql as $$
begin
  insert into rows
  select gen_random_uuid(), random(), repeat('x', 200) from generate_series(1, many);
  if tell is not null then perform pg_notify('bench', tell); end if;
end $$"""


async def write(url: str, way: str, rows: int, end: float, told: asyncio.Event) -> int:
    db, batches = await asyncpg.connect(url), 0
    while time.monotonic() < end:
        await db.execute("select put($1, $2)", rows, "default" if way == "inside" else None)
        batches += 1
        told.set()
    await db.close()
    return batches


async def tell(url: str, told: asyncio.Event) -> None:
    db = await asyncpg.connect(url)
    while True:
        await told.wait()
        told.clear()
        await db.execute("select pg_notify('bench', 'default')")
        await asyncio.sleep(SPACING_SECONDS)


async def measure(url: str, way: str, load: tuple[int, int], seconds: float) -> float:
    """Rows per second."""
    writers, rows = load
    told = asyncio.Event()
    telling = asyncio.create_task(tell(url, told)) if way == "after" else None
    end = time.monotonic() + seconds
    done = await asyncio.gather(*(write(url, way, rows, end, told) for _ in range(writers)))
    if telling is not None:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
    return sum(done) * rows / seconds


async def measure_all(seconds: float) -> None:
    async with embedded() as server:
        admin = await asyncpg.connect(server.url)
        await admin.execute(MAKE)
        ears = [await asyncpg.connect(server.url) for _ in range(LISTENERS)]
        for ear in ears:
            await ear.add_listener("bench", lambda *_: None)
        for load in LOADS:
            found: dict[str, list[float]] = {way: [] for way in WAYS}
            for _ in range(ROUNDS):
                for way in WAYS:
                    found[way].append(await measure(server.url, way, load, seconds))
                    await admin.execute("truncate rows")
            shown = "  ".join(f"{way} {median(found[way]):>9,.0f}/s" for way in WAYS)
            say(f"{load[0]} writers of {load[1]:>4} rows: {shown}  load {load_average()}")
        for ear in ears:
            await ear.close()
        await admin.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    uvloop.run(measure_all(parser.parse_args().seconds))
    return 0


if __name__ == "__main__":
    run(main)
