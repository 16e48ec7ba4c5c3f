"""Callbacks per second from an enqueue to history, beside a bare client that makes the same POSTs.

    python -m bench.callbacks --count 20000 --at-once 64

A server on loopback answers each with a line of JSON. First the bare loop: one process, one aiohttp
session, so many requests at once, and nothing is kept. Then the engine: a `foliot worker run` on an
embedded PostgreSQL with fsync on, while this process enqueues. All of them share this machine.
"""

import argparse
import asyncio
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final
from uuid import uuid4

import aiohttp
import uvloop
from aiohttp import web

from bench.servers import load_average, make_folder
from foliot.core.ids import JobId
from foliot.core.model import HttpTarget, Job, Schedule, ScheduleType
from foliot.embedded import EmbeddedServer
from foliot.runtime.clock import SystemClock
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.jobs import create
from foliot.store.migrate import migrate
from foliot.store.statements import Statement
from foliot.store.tenants import DEFAULT_TENANT
from foliot.testing.database import sql

BATCH: Final = 1000
LOOK_SECONDS: Final = 0.02
LIMIT_SECONDS: Final = 300.0
PAYLOAD: Final = {"order": 4711, "to": "somebody@example.com", "lines": [1, 2, 3]}
WARM_UP: Final = 2000
TARGET_PER_SECOND: Final = 2500
LEFT: Final = sql("select exists (select from foliot.executions)")
SERVING: Final = sql("select exists (select from foliot.workers where capacity > 0)")
ENDS: Final = sql("select status, count(*) as ends from foliot.attempts group by 1")


@dataclass(frozen=True)
class Course:
    count: int
    at_once: int


async def answer(request: web.Request) -> web.Response:
    await request.read()
    return web.json_response({"ok": True})


def receive(tell: Connection) -> None:
    """The whole life of the receiving process."""

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        tell.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    uvloop.run(serve())


@contextmanager
def receiver() -> Iterator[str]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=receive, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/"
    finally:
        process.kill()
        process.join()


async def post_all(url: str, course: Course) -> float:
    """Requests per second of a client that does nothing else."""
    left = iter(range(course.count))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def lane() -> None:
            for _ in left:
                async with session.post(url, json=PAYLOAD) as response:
                    response.raise_for_status()
                    await response.json()

        began = time.perf_counter()
        await asyncio.gather(*(lane() for _ in range(course.at_once)))
        return course.count / (time.perf_counter() - began)


@asynccontextmanager
async def database() -> AsyncIterator[tuple[str, Database]]:
    folder = make_folder()
    server = EmbeddedServer(folder)
    try:
        await server.start()
        await migrate(server.url, SystemClock())
        async with Database(server.url) as opened:
            yield server.url, opened
    finally:
        await server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def worker(url: str, course: Course) -> Iterator[None]:
    told = {
        "FOLIOT_DATABASE_URL": url,
        "FOLIOT_CONCURRENCY": str(course.at_once),
        "FOLIOT_CALLBACKS_PER_HOST": str(course.at_once),
        "FOLIOT_CALLBACK_ALLOW": "loopback",
        "FOLIOT_LOG_LEVEL": "WARNING",
    }
    command = [sys.executable, "-m", "foliot", "worker", "run"]
    process = subprocess.Popen(command, env=os.environ | told)  # noqa: S603 - our own
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


async def make_job(db: Database, target: str) -> JobId:
    job = Job(
        JobId(uuid4()),
        DEFAULT_TENANT,
        "callback",
        Schedule(ScheduleType.MANUAL),
        HttpTarget(target),
        payload=PAYLOAD,
    )
    await create(db, job, changed_by="bench")
    return job.job_id


async def call_all(db: Database, job_id: JobId, count: int) -> float:
    """Executions per second, from the first enqueue until the last is history."""
    now = await db.fetch_value(sql("select statement_timestamp()"))
    began = time.perf_counter()
    for first in range(0, count, BATCH):
        request = Request(DEFAULT_TENANT, "enqueue", f"{began}-{first}", now)
        await enqueue(db, request, [Wanted(job_id)] * min(BATCH, count - first))
    await until(db, LEFT, wanted=False)
    return count / (time.perf_counter() - began)


async def until(db: Database, question: Statement, *, wanted: bool) -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        while await db.fetch_value(question) is not wanted:  # noqa: ASYNC110 - of a database
            await asyncio.sleep(LOOK_SECONDS)


async def measure(course: Course) -> tuple[float, float]:
    with receiver() as target:
        bare = await post_all(target, course)
        async with database() as (url, db):
            job_id = await make_job(db, target)
            with worker(url, course):
                await until(db, SERVING, wanted=True)
                await call_all(db, job_id, WARM_UP)
                whole = await call_all(db, job_id, course.count)
            ends = {row["status"]: row["ends"] for row in await db.fetch(ENDS)}
            if ends != {"SUCCEEDED": course.count + WARM_UP}:
                raise SystemExit(f"not as they should end: {ends}")
        again = await post_all(target, course)
    return (bare + again) / 2, whole


def main() -> int:
    parser = argparse.ArgumentParser(description="callbacks per second, end to end")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--at-once", type=int, default=64)
    options = parser.parse_args()
    before = load_average()
    bare, whole = uvloop.run(measure(Course(options.count, options.at_once)))
    good = whole >= TARGET_PER_SECOND
    sys.stdout.write(
        f"load before       {before}\n"
        f"bare aiohttp loop {bare:10,.0f}/s\n"
        f"enqueue to history{whole:10,.0f}/s   {whole / bare:.2f} of it"
        f"   {'ok' if good else 'BAD'}: {TARGET_PER_SECOND:,}/s wanted\n"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
