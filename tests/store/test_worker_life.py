"""A whole worker on a real database, from its registration to its end, with a runner that runs
nothing."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from foliot.core.model import ErrorType, Failure
from foliot.runtime.clock import SystemClock
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.workers import bury_silent
from foliot.testing.database import sql
from foliot.testing.fake_runner import FakeRunner
from foliot.testing.proxy import NodeProxy
from foliot.testing.soon import soon
from foliot.testing.whole_worker import (
    HISTORY,
    LIVE,
    PROFILE,
    WORKERS,
    Worker,
    never,
    queue_up,
    running_worker,
    under_way,
)
from foliot.worker.life import Orders
from foliot.worker.lines import open_lines
from foliot.worker.service import WorkerService
from foliot.worker.tasks import Failed, HandedBack, Succeeded, Task


async def test_a_worker_serves_its_queue_until_it_is_told_to_leave(
    database: Database, database_url: str
) -> None:
    async with running_worker(database, database_url) as worker:
        await queue_up(database, 50)

        async def all_done() -> bool:
            return bool(await database.fetch_value(HISTORY) == 50)

        await soon(all_done)
        (row,) = await worker.rows()
        assert (row["status"], row["handlers"]) == ("ACTIVE", ["work"])
        worker.orders.leave.set()
    (row,) = await worker.rows()
    assert row["status"] == "DEAD"
    assert worker.runner.is_closed


async def test_a_leaving_worker_lets_what_runs_finish_and_claims_nothing_more(
    database: Database, database_url: str
) -> None:
    await queue_up(database, 6)
    async with running_worker(database, database_url, never) as worker:
        begun = await under_way(worker, 4)
        worker.orders.leave.set()

        async def drains() -> bool:
            return [row["status"] for row in await worker.rows()] == ["DRAINING"]

        await soon(drains)
        for execution_id in begun:
            worker.runner.end(execution_id, Succeeded())
    assert await database.fetch_value(HISTORY) == 4
    left = await database.fetch(LIVE)
    assert [row["attempt_number"] for row in left] == [0, 0]
    assert len(worker.runner.tasks) == 4
    assert worker.runner.cancelled == []


async def test_what_runs_past_the_time_to_leave_is_stopped_and_handed_back(
    database: Database, database_url: str
) -> None:
    await queue_up(database, 2)
    async with running_worker(database, database_url, never, drain_seconds=0.05) as worker:
        await under_way(worker, 2)
        worker.orders.leave.set()
    rows = await database.fetch(LIVE)
    assert [(row["status"], row["attempt_number"], row["fence"]) for row in rows] == [
        ("QUEUED", 0, 1)
    ] * 2
    assert {reason for _, reason in worker.runner.cancelled} == {"the worker leaves"}
    (row,) = await worker.rows()
    assert (row["status"], row["started"]) == ("DEAD", [])


async def test_an_attempt_that_fails_because_it_was_stopped_costs_nothing(
    database: Database, database_url: str
) -> None:
    await queue_up(database, 1)
    broken = Failed(Failure(ErrorType.HANDLER_ERROR, "interrupted"))
    async with running_worker(database, database_url, never, drain_seconds=0.05) as worker:
        await under_way(worker, 1)
        worker.runner.when_cancelled = lambda _: broken
        worker.orders.leave.set()
    (row,) = await database.fetch(LIVE)
    assert (row["status"], row["attempt_number"]) == ("QUEUED", 0)


async def test_what_fails_by_itself_while_the_worker_leaves_has_failed(
    database: Database, database_url: str
) -> None:
    await queue_up(database, 1)
    async with running_worker(database, database_url, never) as worker:
        (begun,) = await under_way(worker, 1)
        worker.orders.leave.set()

        async def drains() -> bool:
            return [row["status"] for row in await worker.rows()] == ["DRAINING"]

        await soon(drains)
        worker.runner.end(begun, Failed(Failure(ErrorType.HANDLER_ERROR, "broken")))
    (row,) = await database.fetch(LIVE)
    assert (row["status"], row["attempt_number"]) == ("RETRYING", 1)


async def test_told_twice_a_worker_stops_at_once(database: Database, database_url: str) -> None:
    await queue_up(database, 2)
    async with running_worker(database, database_url, never) as worker:
        await under_way(worker, 2)
        worker.runner.when_cancelled = lambda _: None
        worker.orders.leave.set()
        async with asyncio.timeout(3):
            await asyncio.sleep(0)
            worker.orders.stop.set()
    assert worker.runner.is_closed
    rows = await database.fetch(LIVE)
    assert [(row["status"], row["attempt_number"]) for row in rows] == [("QUEUED", 0)] * 2


async def test_a_worker_that_is_told_to_leave_before_it_began_leaves(
    database: Database, database_url: str
) -> None:
    class Hanging(FakeRunner):
        async def start(self) -> None:
            await asyncio.Event().wait()

    orders = Orders()
    async with open_lines(database_url, ConnectionOptions(), SystemClock()) as lines:
        service = WorkerService(PROFILE, lines, Hanging, SystemClock(), drain_seconds=30)
        task = asyncio.create_task(service.run(orders))
        orders.leave.set()
        async with asyncio.timeout(5):
            await task
    assert await database.fetch(WORKERS) == []


async def test_an_operator_drains_a_worker_by_its_row(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.worker.life.NEWS_SECONDS", 0.05)
    monkeypatch.setattr("foliot.worker.life.BEAT_SECONDS", 0.05)
    async with running_worker(database, database_url) as worker:

        async def drained() -> int:
            return await database.execute(
                sql(
                    "update foliot.workers set status = 'DRAINING'"
                    " where capacity > 0 and status = 'ACTIVE'"
                )
            )

        await soon(drained)

        async def gone() -> bool:
            return [row["status"] for row in await worker.rows()] == ["DEAD"]

        await soon(gone)


async def begins_anew(worker: Worker) -> None:
    async def second_life() -> list[str]:
        states = [row["status"] for row in await worker.rows()]
        return states if len(worker.runners) == 2 and "ACTIVE" in states else []

    assert await soon(second_life) == ["DEAD", "ACTIVE"], "of two ids"
    first, second = worker.runners
    assert first.is_closed
    assert not second.is_closed


async def test_a_worker_that_was_buried_ends_what_it_runs_and_begins_anew(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.worker.life.NEWS_SECONDS", 0.05)
    monkeypatch.setattr("foliot.worker.life.BEAT_SECONDS", 0.05)
    (row,) = await queue_up(database, 1)
    async with running_worker(database, database_url, never) as worker:
        await under_way(worker, 1)
        assert len(await bury_silent(database, silent_seconds=-60)) == 1
        await begins_anew(worker)
        # Nothing was written for the old life: the row is left for the rescue.
        (live,) = await database.fetch(LIVE)
        assert (live["status"], live["fence"]) == ("RUNNING", 1)
        assert live["id"] == row.execution_id


async def test_a_worker_that_stood_still_ends_what_it_runs_and_begins_anew(
    database: Database, database_url: str
) -> None:
    await queue_up(database, 1)
    async with running_worker(database, database_url, never) as worker:
        (begun,) = await under_way(worker, 1)
        worker.clock.skipped += 16
        await begins_anew(worker)
        old, _ = await worker.rows()
        assert old["started"] == [begun], "what had begun is known to who rescues it"


async def test_a_pause_shorter_than_the_lease_changes_nothing(
    database: Database, database_url: str
) -> None:
    await queue_up(database, 1)
    async with running_worker(database, database_url, never) as worker:
        (begun,) = await under_way(worker, 1)
        worker.clock.skipped += 14
        worker.runner.end(begun, Succeeded())

        async def done() -> bool:
            return bool(await database.fetch_value(HISTORY) == 1)

        await soon(done)
        assert len(worker.runners) == 1


@pytest.mark.direct
async def test_connections_that_are_cut_cost_nothing(database: Database, database_url: str) -> None:
    cut = sql(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
        " and application_name = 'cut me'"
    )
    worker = Worker(database, never)
    options = ConnectionOptions(application_name="cut me")
    await queue_up(database, 8)
    async with open_lines(database_url, options, worker.clock) as lines:
        service = WorkerService(PROFILE, lines, worker.make_runner, worker.clock, drain_seconds=5)
        task = asyncio.create_task(service.run(worker.orders))
        begun = await under_way(worker, 4)
        await database.fetch_value(cut)
        worker.runner.answer = lambda _: Succeeded()
        for execution_id in begun:
            worker.runner.end(execution_id, Succeeded())

        async def done() -> bool:
            return bool(await database.fetch_value(HISTORY) == 8)

        await soon(done)
        worker.orders.leave.set()
        async with asyncio.timeout(10):
            await task
    assert len(worker.runners) == 1


async def test_a_connection_that_died_without_a_word_costs_no_life(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.worker.life.NEWS_SECONDS", 0.05)
    monkeypatch.setattr("foliot.worker.life.BEAT_SECONDS", 0.05)
    beaten = sql(
        "select count(*) from foliot.workers where capacity > 0 and last_heartbeat_at > $1"
    )
    async with (
        NodeProxy(database_url) as proxy,
        running_worker(database, proxy.url) as worker,
    ):
        await soon(worker.rows)
        proxy.strand()
        at = await database.fetch_value(sql("select clock_timestamp() + interval '0.1 s'"))

        async def heard_again() -> bool:
            return bool(await database.fetch_value(beaten, at))

        # Beating every five seconds, it has ten of the fifteen left to be heard again.
        await soon(heard_again, within_seconds=8)
        assert len(worker.runners) == 1


@pytest.mark.parametrize("answer", [never, lambda _: Succeeded()])
async def test_a_silent_database_does_not_keep_a_worker_from_leaving(
    database: Database, database_url: str, answer: Callable[[Task], Any]
) -> None:
    """One end may be unwritten: it is waited for as long as the time to leave, or five seconds."""
    await queue_up(database, 1)
    async with NodeProxy(database_url) as proxy:
        async with running_worker(database, proxy.url, answer, drain_seconds=0.2) as worker:
            await soon(worker.rows)
            if answer is never:
                await under_way(worker, 1)
            proxy.fall_silent()
            worker.orders.leave.set()
            began = worker.clock.monotonic()
        assert worker.clock.monotonic() - began < 10


async def test_what_never_began_goes_back(database: Database, database_url: str) -> None:
    """A host that went down for another's fault: no attempt is spent, and it is not lost."""
    await queue_up(database, 1)
    async with running_worker(database, database_url, lambda _: HandedBack("host")) as worker:

        async def back() -> bool:
            (row,) = await database.fetch(LIVE)
            return bool(row["fence"] == 1 and row["worker_id"] is None)

        await soon(back)
        (row,) = await worker.database.fetch(LIVE)
        assert (row["status"], row["attempt_number"]) == ("QUEUED", 0)
