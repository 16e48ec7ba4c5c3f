"""A worker that is lost to the others while it leaves: what it runs is theirs, and it goes."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from foliot.runtime.service import until
from foliot.store.database import Database
from foliot.store.workers import bury_silent
from foliot.testing.database import sql
from foliot.testing.soon import soon
from foliot.testing.whole_worker import LIVE, Worker, never, queue_up, running_worker, under_way
from foliot.worker import life as life_module

# Longer than any test may take, and than the freeze that the clock tells of.
DRAIN_SECONDS = 600.0
DRAIN = sql("update foliot.workers set status = 'DRAINING' where capacity > 0")

Do = Callable[[Worker], Awaitable[None]]


async def is_told(worker: Worker) -> None:
    worker.orders.leave.set()


async def is_drained(worker: Worker) -> None:
    """By an operator, who writes it into its row."""
    await worker.database.execute(DRAIN)


async def is_buried(worker: Worker) -> None:
    assert await bury_silent(worker.database, silent_seconds=-60)


async def is_frozen(worker: Worker) -> None:
    worker.clock.skipped += 16


@pytest.fixture(autouse=True)
def _quick_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life_module, "NEWS_SECONDS", 0.05)
    monkeypatch.setattr(life_module, "BEAT_SECONDS", 0.05)


async def until_told(caplog: pytest.LogCaptureFixture, words: str) -> None:
    async def is_in_the_log() -> bool:
        return words in caplog.text

    await soon(is_in_the_log)


async def until_over(worker: Worker) -> None:
    assert worker.serving is not None
    async with asyncio.timeout(20):
        await asyncio.wait({worker.serving})


@pytest.mark.parametrize("lose", [is_buried, is_frozen])
@pytest.mark.parametrize("leave", [is_told, is_drained])
async def test_a_worker_that_is_lost_while_it_leaves_ends_what_it_runs_and_goes(
    database: Database,
    database_url: str,
    caplog: pytest.LogCaptureFixture,
    leave: Do,
    lose: Do,
) -> None:
    caplog.set_level("INFO")
    await queue_up(database, 2)
    async with running_worker(database, database_url, never, drain_seconds=DRAIN_SECONDS) as worker:
        await under_way(worker, 2)
        await leave(worker)
        await until_told(caplog, "leaving: 2 executions are still running")
        await lose(worker)
        await until_over(worker)
    assert [runner.is_closed for runner in worker.runners] == [True], "it has one life"
    assert worker.runner.cancelled == []
    assert [row["status"] for row in await worker.rows()] == ["DEAD"]
    # Nothing was written for it: what it ran is left for the rescue.
    rows = await database.fetch(LIVE)
    assert [(row["status"], row["fence"]) for row in rows] == [("RUNNING", 1)] * 2


@pytest.mark.parametrize("leave", [is_told, is_drained])
async def test_who_is_told_to_leave_and_lost_in_one_breath_does_not_begin_anew(
    database: Database,
    database_url: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    leave: Do,
) -> None:
    """As after a freeze: what it was told has waited, and the pulse is felt before it acts."""
    workers: list[Worker] = []
    waits = 0

    async def slow_to_act(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
        nonlocal waits
        waits += 1
        await until(stop, work)
        if waits == 2:  # the first is for its begin
            await is_frozen(workers[0])
            await until_told(caplog, "it stood still for 16 s")

    monkeypatch.setattr(life_module, "until", slow_to_act)
    async with running_worker(database, database_url, drain_seconds=DRAIN_SECONDS) as worker:
        workers.append(worker)
        await soon(worker.rows)
        await leave(worker)
        await until_over(worker)
    assert [runner.is_closed for runner in worker.runners] == [True], "it has one life"
