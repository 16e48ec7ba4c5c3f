"""Workers as real processes: they serve, they leave in order, and their death costs nobody's work.

The times are those of the product: a worker that is silent for fifteen seconds is dead.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from foliot.store.database import Database
from foliot.testing.commands import (
    FoliotCommand,
    Ready,
    clean_environ,
    eventually,
    foliot,
    foliot_up,
    is_alive,
)
from foliot.testing.database import sql
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import ExecutionRow, make_executions, make_job
from foliot.testing.soon import soon

LIVE = sql("select * from foliot.executions order by id")
HISTORY = sql("select * from foliot.attempts order by id, fence")
MODULE = """
import asyncio, os, pathlib, time
from foliot import App

app = App()

@app.job
async def work():
    here = pathlib.Path(__file__).parent
    with (here / "begun").open("a") as notes:
        print(os.getpid(), file=notes, flush=True)
    print("begun")
    while not (here / "go").exists():
        await asyncio.sleep(0.02)
    return {"by": os.getpid()}
"""


class Place:
    """A folder with handlers, whose attempts wait until the test lets them go."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.module = folder / "tasks.py"
        self.module.write_text(MODULE)

    @contextmanager
    def worker(self, *options: str) -> Iterator[FoliotCommand]:
        environ = clean_environ(FOLIOT_DATABASE_URL=self.url)
        with foliot("worker", "run", str(self.module), *options, environ=environ) as command:
            yield command

    def begun(self) -> list[int]:
        """Numbers of the processes in which attempts began."""
        notes = self.folder / "begun"
        return [int(line) for line in notes.read_text().split()] if notes.exists() else []

    def until_begun(self, number: int, within_seconds: float = 20.0) -> list[int]:
        return eventually(
            lambda: found if len(found := self.begun()) >= number else None,
            what=f"{number} attempts have begun",
            within_seconds=within_seconds,
        )

    def let_go(self) -> None:
        (self.folder / "go").touch()


async def queue_up(database: Database, number: int) -> list[ExecutionRow]:
    return await make_executions(database, await make_job(database), number)


async def until_done(database: Database, number: int) -> list[asyncpg.Record]:
    async def look() -> list[asyncpg.Record]:
        rows = await database.fetch(HISTORY)
        return rows if len(rows) >= number else []

    return await soon(look)


async def test_a_worker_runs_what_is_queued_and_keeps_what_it_says(
    database: Database, database_url: str, open_folder: Path
) -> None:
    place = Place(open_folder, database_url)
    place.let_go()
    await queue_up(database, 20)
    with place.worker() as worker:
        rows = await until_done(database, 20)
        assert {row["status"] for row in rows} == {"SUCCEEDED"}
        assert all(row["result"]["by"] != worker.pid for row in rows)

        async def logged() -> bool:
            messages = await database.fetch(sql("select message from foliot.execution_logs"))
            return [row["message"] for row in messages] == ["begun"] * 20

        await soon(logged)
        worker.send(signal.SIGTERM)
        assert await asyncio.to_thread(worker.ended) == 0
        assert worker.lines[-1].endswith("stopped")
    assert not any(map(is_alive, place.begun()))


async def test_told_to_leave_a_worker_hands_back_what_does_not_finish(
    database: Database, database_url: str, open_folder: Path
) -> None:
    place = Place(open_folder, database_url)
    await queue_up(database, 3)
    with place.worker("--drain-seconds", "0.2") as worker:
        pids = place.until_begun(3)
        worker.send(signal.SIGTERM)
        assert await asyncio.to_thread(worker.ended) == 0
    rows = await database.fetch(LIVE)
    assert [(row["status"], row["attempt_number"]) for row in rows] == [("QUEUED", 0)] * 3
    assert not any(map(is_alive, pids))
    status = await database.fetch_value(sql("select status from foliot.workers where capacity > 0"))
    assert status == "DEAD"


async def test_a_worker_that_an_operator_drains_does_not_come_back(
    database: Database, database_url: str, open_folder: Path
) -> None:
    place = Place(open_folder, database_url)
    drain = sql("update foliot.workers set status = 'DRAINING' where capacity > 0")
    with place.worker() as worker:

        async def drained() -> int:
            return await database.execute(drain)

        await soon(drained)
        assert await asyncio.to_thread(worker.ended) == 0
    status = await database.fetch(sql("select status from foliot.workers where capacity > 0"))
    assert [row["status"] for row in status] == ["DEAD"]


async def test_told_twice_a_worker_ends_at_once_and_leaves_no_process(
    database: Database, database_url: str, open_folder: Path
) -> None:
    place = Place(open_folder, database_url)
    await queue_up(database, 2)
    with place.worker() as worker:
        pids = place.until_begun(2)
        worker.send(signal.SIGTERM)
        worker.line_with("leaving")
        worker.send(signal.SIGTERM)
        assert await asyncio.to_thread(worker.ended, within_seconds=4) == 0
    assert not any(map(is_alive, pids))
    rows = await database.fetch(LIVE)
    assert [row["attempt_number"] for row in rows] == [0, 0]


async def test_told_twice_a_worker_does_not_wait_for_a_database_that_is_silent(
    database: Database, database_url: str, open_folder: Path
) -> None:
    place = Place(open_folder, database_url)
    await queue_up(database, 1)
    async with NodeProxy(database_url) as proxy:
        place.url = proxy.url
        with place.worker() as worker:
            pids = await asyncio.to_thread(place.until_begun, 1)
            proxy.fall_silent()
            worker.send(signal.SIGTERM)
            await asyncio.to_thread(worker.line_with, "leaving")
            worker.send(signal.SIGTERM)
            await asyncio.to_thread(worker.ended, within_seconds=8)
    assert not any(map(is_alive, pids))


@contextmanager
def scheduler(url: str) -> Iterator[FoliotCommand]:
    environ = clean_environ(FOLIOT_DATABASE_URL=url)
    with foliot("server", "--role", "scheduler", environ=environ) as command:
        yield command


async def test_a_killed_and_a_frozen_worker_lose_nothing_and_double_nothing(
    database: Database, database_url: str, open_folder: Path
) -> None:
    place = Place(open_folder, database_url)
    one = ("--concurrency", "1")
    with (
        scheduler(database_url),
        place.worker(*one) as killed,
        place.worker(*one) as frozen,
        place.worker("--concurrency", "8") as healthy,
    ):
        for worker in (killed, frozen):
            worker.line_with("serves")
        # The healthy one is given nothing at first: whoever holds one of the two has one slot.
        os.kill(healthy.pid, signal.SIGSTOP)
        await queue_up(database, 2)
        hosts = await asyncio.to_thread(place.until_begun, 2)

        async def known_to_have_begun() -> bool:
            said = await database.fetch(
                sql("select cardinality(started) from foliot.workers where capacity > 0")
            )
            return [row[0] for row in said].count(1) == 2

        await soon(known_to_have_begun)
        os.kill(killed.pid, signal.SIGKILL)
        os.kill(frozen.pid, signal.SIGSTOP)
        os.kill(healthy.pid, signal.SIGCONT)

        again = await asyncio.to_thread(place.until_begun, 4, within_seconds=20)
        assert len(set(again) - set(hosts)) == 2
        os.kill(frozen.pid, signal.SIGCONT)
        await asyncio.to_thread(frozen.line_with, "begins anew")
        eventually(lambda: not any(map(is_alive, hosts)), what="the old processes are gone")
        place.let_go()
        rows = await until_done(database, 4)
    assert await database.fetch(LIVE) == []
    assert [row["status"] for row in rows] == ["FAILED", "SUCCEEDED"] * 2
    assert [row["fence"] for row in rows] == [1, 2] * 2
    assert {row["error"]["type"] for row in rows if row["error"]} == {"WORKER_LOST"}


async def test_a_claim_whose_answer_is_lost_runs_all_the_same(
    database: Database, database_url: str, open_folder: Path
) -> None:
    place = Place(open_folder, database_url)
    place.let_go()
    async with NodeProxy(database_url) as proxy:
        # Of all that a worker of every queue sends, only the claim names one.
        proxy.cut_at(b"far-away", deliver=True)
        place.url = proxy.url
        job = await make_job(database, queue="far-away")
        await make_executions(database, job, 1)
        with scheduler(database_url), place.worker("--queues", "*") as worker:
            rows = await until_done(database, 1)
            assert "claims whose answer was lost are handed back" in worker.output
            # The proxy lives in this loop: nobody may wait here for what needs it.
            worker.send(signal.SIGTERM)
            assert await asyncio.to_thread(worker.ended) == 0
    (row,) = rows
    assert (row["status"], row["attempt_number"], row["fence"]) == ("SUCCEEDED", 1, 2)


def kill_database(ready: Ready) -> None:
    """And see that another takes its place."""
    old = ready.pids["postgres"]
    os.kill(old, signal.SIGKILL)
    eventually(lambda: ready.pids["postgres"] not in (old, None), what="another server")


async def test_what_ends_while_the_database_is_away_is_written_once_it_is_back(
    open_folder: Path,
) -> None:
    """Nothing is lost, run again or rescued: the attempts are the first ones."""
    place = Place(open_folder, "")
    with foliot_up(open_folder / "data", str(place.module)) as ready:
        url = ready.facts["database_url"]
        async with Database(url) as database:
            await queue_up(database, 8)
            await asyncio.to_thread(place.until_begun, 8)
        place.let_go()
        kill_database(ready)
        eventually(ready.is_ready, what="ready again")
        async with Database(url) as database:
            rows = await until_done(database, 8)
            assert {(row["status"], row["fence"]) for row in rows} == {("SUCCEEDED", 1)}
            assert await database.fetch(LIVE) == []
            workers = await database.fetch(
                sql("select status from foliot.workers where capacity > 0")
            )
            assert [row["status"] for row in workers] == ["ACTIVE"]
