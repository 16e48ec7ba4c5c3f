"""Handlers in processes of their own: what they get, what they give, what is heard of them."""

import asyncio
import math
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from foliot.core.model import ErrorType
from foliot.core.storable import to_storable
from foliot.testing.commands import is_alive
from foliot.testing.handlers import Heard, a_task, running
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.tasks import Ended, Failed, HandedBack, LogSource, Snoozed, Succeeded

ZOO = Path(__file__).parent / "zoo"
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner() -> AsyncIterator[HandlerRunner]:
    async with running(ZOO / "tame.py", ZOO / "hooked.py") as runner:
        yield runner


async def result_of(runner: HandlerRunner, handler: str, payload: object = None) -> object:
    ended = await runner.run(a_task(handler, payload), Heard())
    assert isinstance(ended, Succeeded), ended
    return ended.result


def failure_of(ended: Ended) -> tuple[ErrorType, str]:
    assert isinstance(ended, Failed), ended
    return ended.failure.type, ended.failure.message


async def test_handlers_are_known_by_name(runner: HandlerRunner) -> None:
    assert {"add", "add_sync", "on_loop", "in_thread"} <= runner.handlers


@pytest.mark.parametrize("handler", ["add", "add_sync"])
async def test_a_payload_becomes_arguments_and_what_is_returned_the_result(
    runner: HandlerRunner, handler: str
) -> None:
    assert await result_of(runner, handler, {"a": 1, "b": "2"}) == 3


@pytest.mark.parametrize("handler", ["add", "add_sync"])
async def test_a_payload_that_does_not_fit_is_refused_by_its_fields(
    runner: HandlerRunner, handler: str
) -> None:
    heard = Heard()
    ended = await runner.run(a_task(handler, {"a": "x", "c": 1}), heard)
    kind, message = failure_of(ended)
    assert kind is ErrorType.INVALID_PAYLOAD
    assert message.startswith("a: ")
    assert "b: missing" in message
    assert "c: unknown field" in message
    assert heard.starts == 1


async def test_a_handler_that_nobody_knows_is_handed_back(runner: HandlerRunner) -> None:
    heard = Heard()
    assert isinstance(await runner.run(a_task("nobody"), heard), HandedBack)
    assert heard.starts == 0


async def test_the_context_is_that_of_the_attempt(runner: HandlerRunner) -> None:
    heard = Heard()
    task = a_task("facts", {"at": "2030-01-01T00:00:00Z"}, attempt_number=3, fence=9)
    ended = await runner.run(task, heard)
    assert ended == Succeeded(
        {
            "year": 2030,
            "job_name": "job of facts",
            "attempt_number": 3,
            "key": "key",
            "fence": 9,
            "has_time": True,
        }
    )
    assert heard.steps == [(50.0, "half")]


async def test_async_handlers_run_beside_each_other_in_one_process(runner: HandlerRunner) -> None:
    first, second = await asyncio.gather(
        result_of(runner, "meet", {"name": "a", "other": "b"}),
        result_of(runner, "meet", {"name": "b", "other": "a"}),
    )
    assert first == second == await result_of(runner, "pid_on_loop")
    assert first != os.getpid()


async def test_a_sync_handler_has_a_process_which_the_next_one_gets(runner: HandlerRunner) -> None:
    mine = await result_of(runner, "pid")
    assert mine == await result_of(runner, "pid")
    assert mine != await result_of(runner, "pid_on_loop")


async def test_sync_handlers_at_the_same_time_have_different_processes(
    runner: HandlerRunner,
) -> None:
    pids = await asyncio.gather(*(result_of(runner, "pid") for _ in range(3)))
    assert len(set(pids)) == 3


async def test_an_async_handler_may_have_a_process_too(runner: HandlerRunner) -> None:
    apart = await result_of(runner, "pid_apart")
    assert apart not in {await result_of(runner, "pid_on_loop"), await result_of(runner, "pid")}


@pytest.mark.parametrize("handler", ["pid", "pid_on_loop", "pid_apart"])
async def test_what_should_run_alone_gets_a_process_that_nobody_had_or_gets(
    runner: HandlerRunner, handler: str
) -> None:
    seen = {await result_of(runner, name) for name in ("pid", "pid_on_loop", "pid_apart")}
    for _ in range(2):
        ended = await runner.run(a_task(handler, run_alone=True), Heard())
        assert isinstance(ended, Succeeded)
        assert ended.result not in seen
        seen.add(ended.result)
        for name in ("pid", "pid_on_loop", "pid_apart"):
            assert await result_of(runner, name) != ended.result


async def test_a_thread_shares_the_process_of_async_handlers(runner: HandlerRunner) -> None:
    heard = Heard()
    ended = await runner.run(a_task("in_thread"), heard)
    assert ended == Succeeded([await result_of(runner, "pid_on_loop"), False, False])
    assert heard.lines() == ["from a thread"]


async def test_all_that_a_sync_handler_writes_is_kept(runner: HandlerRunner) -> None:
    heard = Heard()
    await runner.run(a_task("talk_sync"), heard)
    printed = ["printed", "from a child", "by descriptor", "half a line"]
    assert heard.lines(LogSource.STDOUT) == printed
    assert heard.lines(LogSource.STDERR) == ["to stderr", "its error"]
    assert heard.lines(LogSource.LOG) == ["logged 1"]
    assert all(0 <= record.at_seconds < 20 for record in heard.records)


async def test_the_words_of_handlers_that_share_a_loop_are_kept_apart(
    runner: HandlerRunner,
) -> None:
    one, other = Heard(), Heard()
    await asyncio.gather(
        runner.run(a_task("talk", {"name": "one", "other": "fails"}), one),
        runner.run(a_task("talk", {"name": "fails", "other": "one"}), other),
    )
    assert one.lines() == [
        "one prints",
        "one logs",
        "one prints again",
        "one prints in a task",
        "one prints in a thread",
    ]
    assert not [line for line in other.lines() if line.startswith("one")]
    assert other.records[-1].level == "ERROR"
    assert "ValueError: as agreed" in other.records[-1].message
    assert "tame.py" in other.records[-1].message
    assert "foliot/worker" not in other.records[-1].message


@pytest.mark.parametrize("handler", ["show", "show_sync"])
async def test_output_that_no_database_keeps_is_made_to_fit(
    runner: HandlerRunner, handler: str
) -> None:
    heard = Heard()
    await runner.run(a_task(handler, {"text": "a\0b"}), heard)
    assert heard.lines() == ["a�b", "a�b"]


@pytest.mark.parametrize(
    ("handler", "printed"), [("show_half", "a���b"), ("show_half_sync", "a\\ud800b")]
)
async def test_half_a_character_is_shown_as_what_it_is(
    runner: HandlerRunner, handler: str, printed: str
) -> None:
    heard = Heard()
    assert await runner.run(a_task(handler), heard) == Succeeded(None)
    assert sorted(heard.lines()) == sorted([printed, "a���b"])
    assert heard.steps == [(None, "a���b")]


async def test_a_payload_that_cannot_be_passed_on_keeps_nobody_else(runner: HandlerRunner) -> None:
    odd, plain = await asyncio.gather(
        runner.run(a_task("add", {"a": 10**30, "b": 1}), Heard()),
        runner.run(a_task("add", {"a": 1, "b": 1}), Heard()),
    )
    assert failure_of(odd)[0] is ErrorType.INVALID_PAYLOAD
    assert plain == Succeeded(2)


async def test_many_large_payloads_at_once_are_no_trouble(runner: HandlerRunner) -> None:
    payload = {"text": "x" * 300_000}
    attempts = [runner.run(a_task("show", payload), Heard()) for _ in range(200)]
    assert set(await asyncio.gather(*attempts)) == {Succeeded(None)}


async def test_words_are_heard_while_the_handler_runs(runner: HandlerRunner) -> None:
    heard = Heard()
    task = a_task("say_and_wait", {"words": "still here"})
    attempt = asyncio.ensure_future(runner.run(task, heard))
    assert await heard.line("still here")
    runner.cancel(task.execution_id, "enough")
    await attempt


async def test_do_not_retry_and_snooze_are_told_apart_from_failures(runner: HandlerRunner) -> None:
    ended = await runner.run(a_task("give_up"), Heard())
    assert isinstance(ended, Failed)
    assert ended.failure.do_not_retry
    assert ended.failure.message == "the account is closed"
    assert await runner.run(a_task("later", 12.5), Heard()) == Snoozed(12.5)
    assert failure_of(await runner.run(a_task("later", -1), Heard()))[1].startswith("Snooze")


@pytest.mark.parametrize(
    ("gift", "words"),
    [("set", "result.deep[1] is a set"), ("key", "a key of result is an int")],
)
async def test_a_result_that_is_not_json_is_a_failure_that_names_the_place(
    runner: HandlerRunner, gift: str, words: str
) -> None:
    kind, message = failure_of(await runner.run(a_task("give", gift), Heard()))
    assert kind is ErrorType.HANDLER_ERROR
    assert message.startswith(words)


@pytest.mark.parametrize("gift", ["surrogate", "nul", "huge", "number", "cycle"])
async def test_a_result_that_cannot_be_kept_succeeds_and_becomes_a_marker(
    runner: HandlerRunner, gift: str
) -> None:
    result = await result_of(runner, "give", gift)
    assert '"foliot":' in to_storable(result, 256 * 1024).text


async def test_results_keep_their_values(runner: HandlerRunner) -> None:
    nan = await result_of(runner, "give", "nan")
    assert isinstance(nan, float)
    assert math.isnan(nan)
    assert await result_of(runner, "give", "tuple") == [1, 2]
    assert await result_of(runner, "give", "enum") == signal.SIGTERM


@pytest.mark.parametrize("handler", ["on_loop", "in_process"])
async def test_hooks_run_around_a_handler(runner: HandlerRunner, handler: str) -> None:
    heard = Heard()
    assert await runner.run(a_task(handler), heard) == Succeeded("done")
    assert heard.lines(LogSource.STDOUT) == [
        f"before {handler}",
        f"before {handler} again",
        "the handler",
        f"after {handler}: None",
    ]
    (failed_hook,) = heard.lines(LogSource.LOG)
    assert failed_hook.startswith("the hook fail failed")
    assert f"no telegraph for {handler}" in failed_hook


@pytest.mark.parametrize("handler", ["on_loop", "in_process"])
async def test_a_hook_that_refuses_fails_the_attempt(runner: HandlerRunner, handler: str) -> None:
    heard = Heard()
    ended = await runner.run(a_task(handler, tags=("refused",)), heard)
    assert failure_of(ended)[1] == "PermissionError: not today"
    assert "the handler" not in heard.lines()
    assert f"after {handler}: PermissionError('not today')" in heard.lines()


async def test_a_hook_after_hears_the_error(runner: HandlerRunner) -> None:
    heard = Heard()
    await runner.run(a_task("fails"), heard)
    assert "after fails: ValueError('no')" in heard.lines()


async def test_a_handler_sees_no_database_and_ignores_no_signal(runner: HandlerRunner) -> None:
    assert await result_of(runner, "surroundings") == [True, []]


@pytest.mark.parametrize("handler", ["leave_a_child", "start_a_daemon"])
async def test_what_a_sync_handler_leaves_behind_ends_with_its_process(
    runner: HandlerRunner, handler: str
) -> None:
    before = await result_of(runner, "pid")
    left = await result_of(runner, handler)
    assert isinstance(left, int)
    assert before != await result_of(runner, "pid")
    async with asyncio.timeout(5):
        while is_alive(left):
            await result_of(runner, "pid")


async def test_what_a_handler_has_started_stays_while_it_runs(runner: HandlerRunner) -> None:
    heard = Heard()
    task = a_task("work_with_a_daemon")
    attempt = asyncio.ensure_future(runner.run(task, heard))
    daemon = int((await heard.line("it is ")).removeprefix("it is "))
    await runner.run(a_task("pid", run_alone=True), Heard())  # others come and go
    await runner.run(a_task("pid", run_alone=True), Heard())
    assert is_alive(daemon)
    runner.cancel(task.execution_id, "enough")
    await attempt
    async with asyncio.timeout(5):
        while is_alive(daemon):
            await result_of(runner, "pid")


async def test_an_execution_that_still_runs_here_is_not_begun_again(
    runner: HandlerRunner,
) -> None:
    heard, again = Heard(), Heard()
    task = a_task("say_and_wait", {"words": "one"})
    attempt = asyncio.ensure_future(runner.run(task, heard))
    await heard.start()
    assert isinstance(await runner.run(task, again), HandedBack)
    runner.cancel(task.execution_id, "enough")
    await attempt
    assert again.starts == 0
