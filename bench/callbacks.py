"""Callbacks per second from an enqueue to history, beside a bare client that makes the same POSTs.

    python -m bench.callbacks --count 20000 --at-once 64

A server on loopback answers each with a line of JSON. First the bare loop: one process, one aiohttp
session, so many requests at once, and nothing is kept. Then the engine: a worker and a scheduler on
an embedded PostgreSQL with fsync on, while this process enqueues. All of them share this machine.
"""

import argparse
import asyncio
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final
from uuid import uuid4

import aiohttp
import asyncpg
import uvloop
from aiohttp import web

from bench.nodes import ALL_OVER, LAST_END, until, until_ready
from bench.servers import load_average, migrated, unlimited
from bench.telling import conclude, run, say
from foliot.core.ids import JobId
from foliot.core.model import HttpTarget, Job, Schedule, ScheduleType
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.jobs import create
from foliot.store.tenants import DEFAULT_TENANT
from foliot.testing.engine import Engine

BATCH: Final = 1000
PAYLOAD: Final = {"order": 4711, "to": "somebody@example.com", "lines": [1, 2, 3]}
WARM_UP: Final = 2000
ENDS: Final = "select status, count(*) as ends from foliot.attempts group by 1"


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


def settings(course: Course) -> dict[str, str]:
    return {
        "FOLIOT_CONCURRENCY": str(course.at_once),
        "FOLIOT_CALLBACKS_PER_HOST": str(course.at_once),
        "FOLIOT_CALLBACK_ALLOW": "loopback",
    }


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


async def call_all(db: Database, look: asyncpg.Connection, job_id: JobId, count: int) -> float:
    """Executions per second, from the first enqueue until the last is history."""
    now = await look.fetchval("select statement_timestamp()")
    began = time.time()  # by the clock that the database has too
    for first in range(0, count, BATCH):
        request = Request(DEFAULT_TENANT, "enqueue", f"{began}-{first}", now)
        await enqueue(db, request, [Wanted(job_id)] * min(BATCH, count - first))
    await until(look, ALL_OVER)
    ended: float = await look.fetchval(LAST_END)
    return count / (ended - began)


async def measure(course: Course) -> tuple[float, float]:
    with receiver() as target:
        bare = await post_all(target, course)
        async with (
            migrated() as server,
            Database(server.url) as db,
            unlimited(server.url) as look,
        ):
            job_id = await make_job(db, target)
            engine = Engine(server.url, server.home)
            with engine.scheduler() as scheduler, engine.worker(**settings(course)) as worker:
                until_ready([scheduler], [worker])
                await call_all(db, look, job_id, WARM_UP)
                whole = await call_all(db, look, job_id, course.count)
            ends = {row["status"]: row["ends"] for row in await look.fetch(ENDS)}
            if ends != {"SUCCEEDED": course.count + WARM_UP}:
                raise SystemExit(f"not as they should end: {ends}")
        again = await post_all(target, course)
    return (bare + again) / 2, whole


def main() -> int:
    parser = argparse.ArgumentParser(description="callbacks per second, end to end")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--quick", action="store_true", help="2,000 of them: does it work?")
    told = parser.parse_args()
    count = 2_000 if told.quick else told.count
    say(f"load before {load_average()}")
    bare, whole = uvloop.run(measure(Course(count, told.at_once)))
    say(f"bare aiohttp loop {bare:10,.0f}/s, enqueue to history {whole:10,.0f}/s")
    figures = {"per_s": round(whole), "bare_per_s": round(bare), "count": count}
    return conclude("callbacks", figures | {"ratio_bare": round(whole / bare, 3)})


if __name__ == "__main__":
    run(main)
