"""Deadlines and cancellation, kept from outside: whatever a handler does, it ends in time, nothing
of it is left, and its place is free again."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from foliot.core.model import ErrorType
from foliot.testing.handlers import Heard, a_task, running
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.tasks import (
    Cancelled,
    Crashed,
    Ended,
    Failed,
    HandedBack,
    Succeeded,
    Task,
)

ZOO = Path(__file__).parent / "zoo"
pytestmark = pytest.mark.asyncio(loop_scope="module")

TIMEOUT, GRACE = 0.1, 0.1
STUBBORN = [
    "spin",
    "listen_for_nobody",
    "sleep_in_c",
    "hold_the_gil",
    "sleep_on_loop",
    "spin_on_loop",
    "swallow",
    "swallow_apart",
    "sleep_in_thread",
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner() -> AsyncIterator[HandlerRunner]:
    async with running(ZOO / "stubborn.py") as runner:
        yield runner


class Begun:
    """An attempt under way."""

    def __init__(self, runner: HandlerRunner, task: Task) -> None:
        self.task = task
        self.heard = Heard()
        self._ended = asyncio.ensure_future(runner.run(task, self.heard))

    async def end(self, within_seconds: float = 10.0) -> Ended:
        async with asyncio.timeout(within_seconds):
            return await self._ended

    @property
    def is_over(self) -> bool:
        return self._ended.done()


async def begun(runner: HandlerRunner, task: Task, words: str = "") -> Begun:
    """Once it has begun; once it has said these words."""
    attempt = Begun(runner, task)
    await (attempt.heard.line(words) if words else attempt.heard.start())
    return attempt


def is_timeout(ended: Ended) -> bool:
    return isinstance(ended, Failed) and ended.failure.type is ErrorType.TIMEOUT


async def assert_free(runner: HandlerRunner) -> None:
    for handler in ("nothing", "nothing_sync"):
        assert await Begun(runner, a_task(handler)).end() == Succeeded(None)


@pytest.mark.parametrize("handler", STUBBORN)
@pytest.mark.parametrize("run_alone", [False, True])
async def test_out_of_time_it_ends_within_its_grace(
    runner: HandlerRunner, handler: str, run_alone: bool
) -> None:
    await assert_free(runner)
    task = a_task(handler, timeout_seconds=TIMEOUT, cancel_grace_seconds=GRACE, run_alone=run_alone)
    assert is_timeout(await Begun(runner, task).end(TIMEOUT + GRACE + 1))
    await assert_free(runner)


@pytest.mark.parametrize("handler", STUBBORN)
async def test_cancelled_it_ends_within_its_grace(runner: HandlerRunner, handler: str) -> None:
    await assert_free(runner)
    attempt = await begun(runner, a_task(handler, cancel_grace_seconds=GRACE), "at it")
    runner.cancel(attempt.task.execution_id, "not wanted")
    runner.cancel(attempt.task.execution_id, "not wanted at all")
    assert await attempt.end(GRACE + 1) == Cancelled("not wanted")
    await assert_free(runner)


async def test_a_thread_that_does_not_listen_ends_with_its_process(runner: HandlerRunner) -> None:
    before = await Begun(runner, a_task("pid")).end()
    attempt = await begun(runner, a_task("sleep_in_thread", cancel_grace_seconds=GRACE), "at it")
    runner.cancel(attempt.task.execution_id, "not wanted")
    await attempt.end()
    assert await Begun(runner, a_task("pid")).end() != before


@pytest.mark.parametrize(
    ("handler", "begins", "ends"),
    [
        ("wait", "waiting", "tidied up"),
        ("look", "looking", "seen"),
        ("look_in_thread", "looking", ""),
        ("succeed_late", "waiting", ""),
        ("fail_late", "waiting", ""),
    ],
)
async def test_who_listens_ends_at_once_and_in_order(
    runner: HandlerRunner, handler: str, begins: str, ends: str
) -> None:
    attempt = await begun(runner, a_task(handler), begins)
    runner.cancel(attempt.task.execution_id, "not wanted")
    assert await attempt.end() == Cancelled("not wanted")
    assert not ends or ends in attempt.heard.lines()


async def test_who_listens_but_has_no_time_left_has_timed_out(runner: HandlerRunner) -> None:
    for handler in ("wait", "look", "look_in_thread", "succeed_late", "fail_late"):
        task = a_task(handler, timeout_seconds=TIMEOUT)
        assert is_timeout(await Begun(runner, task).end())


@pytest.mark.parametrize("handler", ["wait", "look", "nothing"])
async def test_one_that_is_cancelled_as_it_begins_ends_too(
    runner: HandlerRunner, handler: str
) -> None:
    attempt = Begun(runner, a_task(handler))
    await asyncio.sleep(0)  # it is on its way to its process, in which it has yet to begin
    runner.cancel(attempt.task.execution_id, "not wanted")
    assert await attempt.end() == Cancelled("not wanted")


async def test_of_one_that_is_over_a_cancellation_changes_nothing(runner: HandlerRunner) -> None:
    attempt = Begun(runner, a_task("nothing"))
    assert await attempt.end() == Succeeded(None)
    runner.cancel(attempt.task.execution_id, "too late")
    await assert_free(runner)


async def test_who_swallows_its_cancellation_takes_nobody_with_it(runner: HandlerRunner) -> None:
    others = [await begun(runner, a_task("wait"), "waiting") for _ in range(3)]
    task = a_task("swallow", timeout_seconds=TIMEOUT, cancel_grace_seconds=GRACE)
    assert is_timeout(await Begun(runner, task).end(TIMEOUT + GRACE + 1))
    for other in others:
        assert isinstance(await other.end(), HandedBack)
    await assert_free(runner)


async def test_of_those_on_a_loop_that_stands_still_only_those_out_of_time_have_timed_out(
    runner: HandlerRunner,
) -> None:
    patient = await begun(runner, a_task("wait"), "waiting")
    asked = await begun(runner, a_task("wait"), "waiting")
    short = a_task("wait", timeout_seconds=0.5, cancel_grace_seconds=GRACE)
    hasty = await begun(runner, short, "waiting")
    blocker = await begun(runner, a_task("sleep_on_loop"), "at it")
    behind = Begun(runner, a_task("nothing"))
    runner.cancel(asked.task.execution_id, "not wanted")
    assert is_timeout(await hasty.end())
    assert isinstance(await patient.end(), HandedBack)
    assert await asked.end() == Cancelled("not wanted")
    assert isinstance(await behind.end(), HandedBack)
    assert behind.heard.starts == 0
    # It would do the same to the next ones: from now on it runs alone.
    ended = await blocker.end()
    assert isinstance(ended, Crashed)
    assert not ended.alone
    assert "kept the event loop" in ended.failure.message
    await assert_free(runner)


async def test_while_a_handler_keeps_the_loop_new_ones_run_beside_it(
    runner: HandlerRunner, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    blocker = await begun(runner, a_task("keep_the_loop", str(release)), "keeping it")
    assert "others wait for it" in await blocker.heard.line("has kept the event loop")
    assert await Begun(runner, a_task("nothing")).end() == Succeeded(None)
    assert not blocker.is_over
    release.touch()
    assert await blocker.end() == Succeeded(None)


async def test_a_caller_that_lets_go_has_it_stopped(runner: HandlerRunner) -> None:
    heard = Heard()
    task = a_task("wait")
    letting_go = asyncio.ensure_future(runner.run(task, heard))
    await heard.line("waiting")
    letting_go.cancel()
    assert await heard.line("tidied up")
