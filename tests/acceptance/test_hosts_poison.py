"""Handlers that harm their process hurt themselves; who shared it with them is handed back."""

import asyncio
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from foliot.core.model import ErrorType
from foliot.testing.handlers import Heard, a_task, running
from foliot.worker.hosts.output import OUTPUT_BYTES_MAX
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.tasks import Crashed, Ended, Failed, HandedBack, LogSource, Succeeded

ZOO = Path(__file__).parent / "zoo"
pytestmark = pytest.mark.asyncio(loop_scope="module")

RAISING = {
    "recurse": "RecursionError: ",
    "exhaust": "MemoryError",
    "raise_unspeakable": "Unspeakable: (its text cannot be read",
    "raise_unending": "Unending: (its text cannot be read",
    "interrupt": "KeyboardInterrupt",
    "exit_politely": "SystemExit: enough",
}
DEADLY = {
    "exit_at_once": "exited with status 3",
    "segfault": "ended by SIGSEGV",
    "abort": "ended by SIGABRT",
    "kill_itself": "ended by SIGKILL",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner() -> AsyncIterator[HandlerRunner]:
    async with running(ZOO / "poison.py") as runner:
        yield runner


async def end_of(
    runner: HandlerRunner,
    handler: str,
    payload: object,
    heard: Heard | None = None,
    *,
    run_alone: bool = False,
) -> Ended:
    async with asyncio.timeout(20):
        return await runner.run(a_task(handler, payload, run_alone=run_alone), heard or Heard())


async def assert_unhurt(runner: HandlerRunner) -> None:
    for handler in ("nothing", "nothing_sync"):
        assert await end_of(runner, handler, None) == Succeeded(None)


async def a_neighbour(runner: HandlerRunner) -> asyncio.Future[Ended]:
    """Somebody who waits on the shared loop."""
    heard = Heard()
    attempt = asyncio.ensure_future(runner.run(a_task("wait"), heard))
    await heard.line("waiting")
    return attempt


@pytest.mark.parametrize("handler", ["take", "take_on_loop", "take_in_task"])
@pytest.mark.parametrize("poison", RAISING)
async def test_what_is_raised_fails_the_attempt_and_nothing_else(
    runner: HandlerRunner, handler: str, poison: str
) -> None:
    neighbour = await a_neighbour(runner)
    ended = await end_of(runner, handler, {"poison": poison})
    assert isinstance(ended, Failed)
    assert ended.failure.type is ErrorType.HANDLER_ERROR
    assert ended.failure.message.startswith(RAISING[poison])
    await assert_unhurt(runner)
    assert not neighbour.done()
    neighbour.cancel()


@pytest.mark.parametrize("poison", DEADLY)
async def test_a_sync_handler_dies_alone(runner: HandlerRunner, poison: str) -> None:
    neighbour = await a_neighbour(runner)
    for run_alone in (False, True):
        heard = Heard()
        ended = await end_of(runner, "take", {"poison": poison}, heard, run_alone=run_alone)
        assert "taking it" in heard.lines()
        assert isinstance(ended, Crashed)
        assert DEADLY[poison] in ended.failure.message
        assert not run_alone or ended.alone
    await assert_unhurt(runner)
    assert not neighbour.done()
    neighbour.cancel()


@pytest.mark.parametrize("handler", ["take_on_loop", "take_in_task"])
@pytest.mark.parametrize("poison", DEADLY)
async def test_a_death_on_a_shared_loop_is_put_down_to_whose_code_ran(
    runner: HandlerRunner, handler: str, poison: str
) -> None:
    neighbour = await a_neighbour(runner)
    heard = Heard()
    ended = await end_of(runner, handler, {"poison": poison}, heard)
    assert isinstance(ended, Crashed)
    assert DEADLY[poison] in ended.failure.message
    assert not ended.alone
    assert heard.lines() == ["taking it"]
    # Who was killed from outside may have been anybody: both are suspects, to run alone next.
    expected = Crashed if poison == "kill_itself" else HandedBack
    assert isinstance(await neighbour, expected)
    await assert_unhurt(runner)


@pytest.mark.parametrize("poison", DEADLY)
async def test_an_async_handler_that_runs_alone_dies_alone(
    runner: HandlerRunner, poison: str
) -> None:
    neighbour = await a_neighbour(runner)
    ended = await end_of(runner, "take_on_loop", {"poison": poison}, run_alone=True)
    assert isinstance(ended, Crashed)
    assert ended.alone
    assert not neighbour.done()
    neighbour.cancel()


async def test_a_process_that_has_run_others_before_does_not_convict(
    runner: HandlerRunner,
) -> None:
    assert await end_of(runner, "nothing_sync", None) == Succeeded(None)
    ended = await end_of(runner, "take", {"poison": "segfault"})
    assert isinstance(ended, Crashed)
    assert not ended.alone


@pytest.mark.parametrize("handler", ["take", "take_on_loop"])
@pytest.mark.parametrize("poison", ["close_everything", "close_everything_and_stay"])
async def test_a_handler_that_closes_every_file_has_crashed(
    runner: HandlerRunner, handler: str, poison: str
) -> None:
    assert isinstance(await end_of(runner, handler, {"poison": poison}), Crashed)
    await assert_unhurt(runner)


async def test_a_handler_that_kills_what_started_it_is_a_suspect(runner: HandlerRunner) -> None:
    neighbour = await a_neighbour(runner)
    ended = await end_of(runner, "take", {"poison": "kill_its_parent"})
    suspect = await neighbour
    assert isinstance(ended, Crashed)
    assert isinstance(suspect, Crashed)
    assert not suspect.alone
    # Suspicion has an end: who runs alone is held to account.
    again = await end_of(runner, "take", {"poison": "kill_its_parent"}, run_alone=True)
    assert isinstance(again, Crashed)
    assert again.alone
    await assert_unhurt(runner)


@pytest.mark.parametrize("handler", ["take", "take_on_loop"])
async def test_a_handler_that_forks_and_returns_twice_has_returned_once(
    runner: HandlerRunner, handler: str
) -> None:
    assert await end_of(runner, handler, {"poison": "come_back_twice"}) == Succeeded(None)
    for _ in range(20):
        await assert_unhurt(runner)


async def test_all_that_a_handler_has_forked_goes_with_it(runner: HandlerRunner) -> None:
    """Whether it did is what the end of the fixture looks at."""
    heard = Heard()
    task = a_task("fork_much", {"count": 100}, cancel_grace_seconds=0.1)
    attempt = asyncio.ensure_future(runner.run(task, heard))
    await heard.line("forked")
    runner.cancel(task.execution_id, "too much")
    async with asyncio.timeout(20):
        await attempt
    await assert_unhurt(runner)


@pytest.mark.parametrize(
    ("handler", "payload"),
    [
        ("pour", {"megabytes": 1000}),
        ("print_much", {"lines": 30_000}),
        ("print_much_on_loop", {"lines": 30_000}),
    ],
)
async def test_output_is_cut_where_it_is_too_much(
    runner: HandlerRunner, handler: str, payload: object
) -> None:
    heard = Heard()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert await end_of(runner, handler, payload, heard) == Succeeded(None)
    grown_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    kept = sum(len(line) for line in heard.lines(LogSource.STDOUT))
    assert kept <= OUTPUT_BYTES_MAX
    if handler == "pour":  # one line without an end, and one after it
        assert [len(line) for line in heard.lines()] == [16 * 1024, len("the end")]
    else:
        assert kept > 0.8 * OUTPUT_BYTES_MAX
        assert "cut here" in heard.lines(LogSource.LOG)[-1]
    assert grown_bytes < 10 * OUTPUT_BYTES_MAX
