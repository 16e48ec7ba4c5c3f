"""Handlers that would hurt others without meaning to: their neighbours, the worker, the machine."""

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from foliot.core.model import ErrorType
from foliot.core.storable import RESULT_BYTES_MAX
from foliot.runtime.chance import fresh_id
from foliot.testing.commands import eventually, is_alive
from foliot.testing.handlers import MARK, Heard, a_task, marked_processes, running
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.tasks import Cancelled, Crashed, Ended, Failed, HandedBack, Succeeded, Task

SLY = Path(__file__).parent / "zoo" / "sly.py"
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner() -> AsyncIterator[HandlerRunner]:
    async with running(SLY) as runner:
        yield runner


async def end_of(runner: HandlerRunner, task: Task, heard: Heard | None = None) -> Ended:
    async with asyncio.timeout(15):
        return await runner.run(task, heard or Heard())


async def assert_unhurt(runner: HandlerRunner) -> None:
    for handler in ("nothing", "nothing_sync"):
        assert await end_of(runner, a_task(handler)) == Succeeded(None)


async def test_what_several_threads_say_at_once_is_told_apart(runner: HandlerRunner) -> None:
    heard = Heard()
    ended = await end_of(runner, a_task("talk_in_threads"), heard)
    assert ended == Succeeded("x" * 200_000)
    assert len(heard.lines()) == 100
    assert heard.steps


@pytest.mark.parametrize("handler", ["snooze_beyond_all_numbers", "raise_a_nameless_error"])
async def test_an_error_that_cannot_be_told_harms_no_neighbour(
    runner: HandlerRunner, handler: str
) -> None:
    heard = Heard()
    neighbour = asyncio.ensure_future(runner.run(a_task("wait"), heard))
    await heard.line("waiting")
    ended = await end_of(runner, a_task(handler))
    assert isinstance(ended, Failed)
    assert ended.failure.type is ErrorType.HANDLER_ERROR
    assert not neighbour.done()
    neighbour.cancel()


async def test_an_iterator_that_ran_out_in_a_thread_is_an_error(runner: HandlerRunner) -> None:
    ended = await end_of(runner, a_task("exhaust_an_iterator"))
    assert isinstance(ended, Failed)
    assert "StopIteration" in ended.failure.message


async def test_what_a_handler_has_started_goes_even_if_nobody_is_left_to_bury_it() -> None:
    """Whether it did is what the end of `running` looks at."""
    async with running(SLY) as runner:
        ended = await end_of(runner, a_task("leave_a_child_and_kill_its_parent"))
        assert isinstance(ended, Crashed)
        await assert_unhurt(runner)


async def test_a_child_of_a_thread_goes_with_its_attempt(runner: HandlerRunner) -> None:
    ended = await end_of(runner, a_task("leave_a_child_of_a_thread"))
    assert isinstance(ended, Succeeded)
    pid = ended.result
    assert isinstance(pid, int)
    await asyncio.to_thread(eventually, lambda: not is_alive(pid), what="the child gone")


async def test_a_deadline_is_kept_though_what_kills_was_made_to_stop(runner: HandlerRunner) -> None:
    task = a_task("stop_its_parent", timeout_seconds=0.1, cancel_grace_seconds=0.1)
    ended = await end_of(runner, task)
    assert isinstance(ended, Failed)
    assert ended.failure.type is ErrorType.TIMEOUT
    await assert_unhurt(runner)


async def test_however_many_steps_are_told_they_take_no_room(runner: HandlerRunner) -> None:
    heard = Heard()
    ended = await end_of(runner, a_task("step_much"), heard)
    assert isinstance(ended, Succeeded)
    assert isinstance(ended.result, int)
    assert ended.result < 20 * 1024**2
    assert heard.steps[-1] == (99, "step 299999")


async def test_a_number_of_a_class_of_its_own_is_a_whole_result(runner: HandlerRunner) -> None:
    assert await end_of(runner, a_task("give_money")) == Succeeded([1.5])


async def test_a_result_that_is_too_large_says_how_large_it_may_be(runner: HandlerRunner) -> None:
    ended = await end_of(runner, a_task("give_too_much"))
    assert isinstance(ended, Succeeded)
    assert ended.is_marker
    assert isinstance(ended.result, dict)
    assert ended.result["reason"] == f"larger than {RESULT_BYTES_MAX} bytes"


def open_descriptors() -> set[int]:
    return set(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208 - names are enough


def limit_with_room_for(count: int) -> int:
    taken = open_descriptors()
    free = [fd for fd in range(max(taken) + count + 2) if fd not in taken]
    return free[count]


async def test_a_process_that_cannot_be_had_costs_no_descriptor() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with running(SLY) as runner:
        await assert_unhurt(runner)
        before = len(open_descriptors())
        for room in range(8):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit_with_room_for(room), hard))
            try:
                ended = await runner.run(a_task("nothing_sync", run_alone=True), Heard())
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            if isinstance(ended, HandedBack):
                assert len(open_descriptors()) == before
        await assert_unhurt(runner)


async def test_a_signal_to_everybody_ends_no_handler() -> None:
    """As a service manager sends it, to the worker and to all that it has started."""
    mark = str(fresh_id())
    runner = HandlerRunner([str(SLY)], environ=dict(os.environ) | {MARK: mark})
    await runner.start()
    heard = [Heard(), Heard()]
    attempts = [
        asyncio.ensure_future(runner.run(a_task(handler), each))
        for handler, each in zip(("wait", "wait_sync"), heard, strict=True)
    ]
    for each in heard:
        await each.line("waiting")
    for pid in marked_processes(mark):
        os.kill(pid, signal.SIGTERM)
    await assert_unhurt(runner)
    assert not any(attempt.done() for attempt in attempts)
    await runner.close(grace_seconds=0)
    assert not marked_processes(mark)
    await asyncio.wait(attempts)


async def test_what_a_handler_has_forked_heeds_its_signals(runner: HandlerRunner) -> None:
    assert await end_of(runner, a_task("terminate_a_child")) == Succeeded(-signal.SIGTERM)


async def test_what_is_cancelled_while_processes_come_up_does_not_begin(
    runner: HandlerRunner,
) -> None:
    await end_of(runner, a_task("leave_a_child_and_kill_its_parent"))
    heard, task = Heard(), a_task("nothing")
    attempt = asyncio.ensure_future(runner.run(task, heard))
    await asyncio.sleep(0)
    runner.cancel(task.execution_id, "not needed")
    assert await attempt == Cancelled("not needed")
    assert not heard.starts
    await assert_unhurt(runner)


@pytest.mark.parametrize("handler", ["stop_the_loop", "cancel_everybody"])
async def test_who_takes_the_loop_from_others_makes_none_of_them_fail(
    runner: HandlerRunner, handler: str
) -> None:
    heard = Heard()
    neighbour = asyncio.ensure_future(runner.run(a_task("wait"), heard))
    await heard.line("waiting")
    for ended in (await end_of(runner, a_task(handler)), await neighbour):
        assert isinstance(ended, Crashed)
        assert not ended.alone
    await assert_unhurt(runner)


async def test_a_flood_of_lines_does_not_keep_the_worker_from_its_other_work(
    runner: HandlerRunner,
) -> None:
    heard, most, before = Heard(), 0, 0
    attempt = asyncio.ensure_future(runner.run(a_task("print_nothing_much"), heard))
    while not attempt.done():
        await asyncio.sleep(0)  # one turn of the loop
        most, before = max(most, len(heard.records) - before), len(heard.records)
    assert await attempt == Succeeded(None)
    assert heard.lines()[-1].startswith("the output of this attempt is cut here")
    assert most < 5_000 < len(heard.records)


async def test_a_process_that_an_attempt_on_a_shared_loop_has_started_ends_with_it(
    runner: HandlerRunner,
) -> None:
    heard, task = Heard(), a_task("wait_for_a_process")
    attempt = asyncio.ensure_future(runner.run(task, heard))
    pid = int((await heard.line("it is")).removeprefix("it is "))
    runner.cancel(task.execution_id, "not needed")
    assert await attempt == Cancelled("not needed")
    await asyncio.to_thread(eventually, lambda: not is_alive(pid), what="the process gone")
