"""Procrastinate: `fill 1000` puts so many jobs into an empty database, `drain 1000` works them off.

Filled by its batches. It fetches and finishes jobs one by one, so that all it can be given is
concurrency and connections enough. Of a job that is over it keeps the row and a line for each
change of its status: nothing is deleted, as is its default.
"""

import asyncio
import json
import logging
import os
import sys
import time

import procrastinate

CONCURRENCY = 50
CONNECTIONS = 20
FILL_BATCH = 1000
LOOK_SECONDS = 0.005
LEFT = "select exists (select from procrastinate_jobs where status in ('todo', 'doing')) as found"

connector = procrastinate.PsycopgConnector(
    conninfo=os.environ["DATABASE_URL"], min_size=CONNECTIONS, max_size=CONNECTIONS
)
app = procrastinate.App(connector=connector)


async def noop() -> None: ...


task = app.task(name="noop")(noop)


async def fill(jobs: int) -> float:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        began = time.perf_counter()
        for first in range(0, jobs, FILL_BATCH):
            await task.batch_defer_async(*[{}] * min(FILL_BATCH, jobs - first))
        return jobs / (time.perf_counter() - began)


async def drain(jobs: int) -> float:
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    async with app.open_async():
        began = time.perf_counter()
        await app.run_worker_async(
            wait=False, concurrency=CONCURRENCY, install_signal_handlers=False
        )
        while (await connector.execute_query_one_async(LEFT))["found"]:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        return jobs / (time.perf_counter() - began)


if __name__ == "__main__":
    verb = {"fill": fill, "drain": drain}[sys.argv[1]]
    sys.stdout.write(json.dumps({"per_s": asyncio.run(verb(int(sys.argv[2])))}) + "\n")
