"""PgQueuer: `fill 40000` puts so many jobs into an empty database, `drain 40000` works them off.

As its guide to tuning says: its own settings for autovacuum, one connection of asyncpg for the
queue's manager, and a large batch for short jobs. Durability as it comes, so that nothing is lost
in a crash. Of a job that is over it deletes the row and keeps what became of it in a log: a line
for each change of its status.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver

BATCH = 500
FILL_BATCH = 1000
LOOK_SECONDS = 0.005
LEFT = "select exists (select from pgqueuer)"


async def fill(jobs: int) -> float:
    queries = Queries(AsyncpgDriver(await asyncpg.connect(os.environ["DATABASE_URL"])))
    await queries.install()
    await queries.optimize_autovacuum()
    began = time.perf_counter()
    for first in range(0, jobs, FILL_BATCH):
        count = min(FILL_BATCH, jobs - first)
        await queries.enqueue(["noop"] * count, [None] * count, [0] * count)
    return jobs / (time.perf_counter() - began)


async def drain(jobs: int) -> float:
    own, other = [await asyncpg.connect(os.environ["DATABASE_URL"]) for _ in range(2)]
    queue = PgQueuer(AsyncpgDriver(own))
    all_ran, ran = asyncio.Event(), 0

    async def noop(_: Any) -> None:  # noqa: ANN401 - a job of theirs
        nonlocal ran
        ran += 1
        if ran == jobs:
            all_ran.set()

    queue.entrypoint("noop")(noop)
    began = time.perf_counter()
    running = asyncio.create_task(queue.run(batch_size=BATCH))
    await all_ran.wait()
    while await other.fetchval(LEFT):  # noqa: ASYNC110 - of a database
        await asyncio.sleep(LOOK_SECONDS)
    per_second = jobs / (time.perf_counter() - began)
    queue.shutdown.set()
    await running
    return per_second


if __name__ == "__main__":
    verb = {"fill": fill, "drain": drain}[sys.argv[1]]
    sys.stdout.write(json.dumps({"per_s": uvloop.run(verb(int(sys.argv[2])))}) + "\n")
