"""The process that starts handlers is lost: another takes its place, or those who wait hear why."""

import asyncio
import os
import signal
from io import TextIOWrapper
from pathlib import Path
from uuid import uuid4

import pytest

from foliot.testing.handlers import MARK, Heard, a_task, marked_processes, running
from foliot.testing.slow_deaths import slow_to_die
from foliot.worker.hosts import runner as hosts_runner
from foliot.worker.hosts.nursery_link import NurseryLink
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.tasks import Cancelled, Crashed, Ended, HandedBack, Succeeded, Task

GOOD = """
import os, signal, subprocess
from foliot import App
app = App()
@app.job
def nothing_sync(): ...
@app.job
def stay():
    print(os.getppid(), os.getpid())
    signal.pause()
@app.job
def stay_with_a_child():
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    print(os.getppid(), child.pid)
    signal.pause()
"""
# Whoever opens the other end knows that it is being imported, and says how that goes on.
ASKING = """
import os
from pathlib import Path
with Path({imports!r}).open("a") as file: file.write("again\\n")
exec(Path({pipe!r}).read_text())
"""


class Shop:
    """A module on disk, and what happens when it is imported anew."""

    def __init__(self, folder: Path) -> None:
        self.target = folder / f"shop_{uuid4().hex}.py"
        self._pipe = folder / "pipe"
        self._imports = folder / "imports"
        os.mkfifo(self._pipe)
        self.target.write_text(GOOD)

    @property
    def imports(self) -> int:
        return len(self._imports.read_text().splitlines())

    def ask_from_now_on(self) -> None:
        code = ASKING.format(imports=str(self._imports), pipe=str(self._pipe))
        self.target.write_text(code)

    async def importing(self) -> TextIOWrapper:
        async with asyncio.timeout(10):
            return await asyncio.to_thread(self._pipe.open, "w")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def begun(runner: HandlerRunner, task: Task, heard: Heard | None = None) -> asyncio.Future[Ended]:
    return asyncio.ensure_future(runner.run(task, heard or Heard()))


async def end_of(attempt: asyncio.Future[Ended]) -> Ended:
    async with asyncio.timeout(10):
        return await attempt


async def pids_of(heard: Heard) -> tuple[int, int]:
    """Of the nursery, and of what the attempt runs in or has started."""
    nursery, other = (await heard.line("")).split()
    return int(nursery), int(other)


async def lose_nursery(runner: HandlerRunner) -> None:
    heard = Heard()
    attempt = begun(runner, a_task("stay"), heard)
    nursery, _ = await pids_of(heard)
    os.kill(nursery, signal.SIGKILL)
    assert isinstance(await end_of(attempt), Crashed)


@pytest.mark.parametrize("fault", ["raise RuntimeError('half deployed')", "os._exit(5)"])
async def test_who_comes_while_modules_are_imported_shares_what_comes_of_it(
    shop: Shop, fault: str
) -> None:
    async with running(shop.target) as runner:
        shop.ask_from_now_on()
        await lose_nursery(runner)
        attempts = [begun(runner, a_task("nothing_sync"))]
        with await shop.importing() as answer:
            attempts += [begun(runner, a_task("nothing_sync")) for _ in range(3)]
            await asyncio.sleep(0)
            answer.write(fault)
        for attempt in attempts:
            ended = await end_of(attempt)
            assert isinstance(ended, HandedBack)
            assert "cannot import" in ended.reason
        assert shop.imports == 1
        shop.target.write_text(GOOD)
        assert await end_of(begun(runner, a_task("nothing_sync"))) == Succeeded(None)


async def test_who_comes_while_modules_are_imported_runs_after_that(shop: Shop) -> None:
    async with running(shop.target) as runner:
        shop.ask_from_now_on()
        await lose_nursery(runner)
        attempts = [begun(runner, a_task("nothing_sync"))]
        with await shop.importing() as answer:
            attempts += [begun(runner, a_task("nothing_sync")) for _ in range(2)]
            await asyncio.sleep(0)
            answer.write(GOOD)
        assert [await end_of(attempt) for attempt in attempts] == [Succeeded(None)] * 3
        assert shop.imports == 1


async def test_closing_does_not_wait_for_an_import(shop: Shop) -> None:
    mark = str(uuid4())
    runner = HandlerRunner([str(shop.target)], environ=dict(os.environ) | {MARK: mark})
    await runner.start()
    shop.ask_from_now_on()
    await lose_nursery(runner)
    attempts = [begun(runner, a_task("nothing_sync")) for _ in range(2)]
    with await shop.importing():
        async with asyncio.timeout(4):  # a process that listens would get five seconds
            await runner.close(grace_seconds=0)
        for attempt in attempts:
            assert await end_of(attempt) == HandedBack("the worker is stopping")
    assert not marked_processes(mark)


@pytest.fixture
def kills(monkeypatch: pytest.MonkeyPatch) -> asyncio.Semaphore:
    """One for each time that a process was to be killed; what does not die is soon looked at."""
    told = asyncio.Semaphore(0)
    kill = NurseryLink.kill

    def kill_and_tell(link: NurseryLink, host: int) -> None:
        kill(link, host)
        told.release()

    monkeypatch.setattr(NurseryLink, "kill", kill_and_tell)
    monkeypatch.setattr(hosts_runner, "KILL_SECONDS", 0.2)
    return told


async def test_a_process_that_is_slow_to_die_costs_the_others_nothing(
    shop: Shop, kills: asyncio.Semaphore
) -> None:
    async with running(shop.target) as runner:
        neighbours = Heard()
        neighbour = begun(runner, a_task("stay"), neighbours)
        await pids_of(neighbours)
        heard = Heard()
        task = a_task("stay", cancel_grace_seconds=0)
        slow = begun(runner, task, heard)
        _, pid = await pids_of(heard)
        with slow_to_die(pid):
            runner.cancel(task.execution_id, "enough")
            async with asyncio.timeout(10):
                for _ in range(5):  # at the third, one that does not answer is given up
                    await kills.acquire()
            assert not slow.done()
        assert await end_of(slow) == Cancelled("enough")
        assert await end_of(begun(runner, a_task("nothing_sync"))) == Succeeded(None)
        assert not neighbour.done()


async def test_nobody_waits_for_what_a_handler_leaves_behind_and_does_not_die(shop: Shop) -> None:
    async with running(shop.target) as runner:
        neighbours, heard = Heard(), Heard()
        neighbour = begun(runner, a_task("stay"), neighbours)
        await pids_of(neighbours)
        task = a_task("stay_with_a_child", cancel_grace_seconds=0)
        attempt = begun(runner, task, heard)
        _, child = await pids_of(heard)
        with slow_to_die(child):
            runner.cancel(task.execution_id, "enough")
            assert await end_of(attempt) == Cancelled("enough")
            for _ in range(2):
                fresh = a_task("nothing_sync", run_alone=True)
                assert await end_of(begun(runner, fresh)) == Succeeded(None)
            assert not neighbour.done()


@pytest.mark.usefixtures("kills")
async def test_when_the_worker_gives_up_the_nursery_nobody_is_convicted(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill = os.kill

    def kill_but_wake_nobody(pid: int, number: int) -> None:
        if number != signal.SIGCONT:
            kill(pid, number)

    monkeypatch.setattr(os, "kill", kill_but_wake_nobody)
    async with running(shop.target) as runner:
        heard = Heard()
        alone = begun(runner, a_task("stay", run_alone=True), heard)
        nursery, _ = await pids_of(heard)
        task = a_task("stay", cancel_grace_seconds=0)
        other = begun(runner, task)
        os.kill(nursery, signal.SIGSTOP)
        runner.cancel(task.execution_id, "enough")
        assert await end_of(other) == Cancelled("enough")
        suspect = await end_of(alone)
        assert isinstance(suspect, Crashed)
        assert not suspect.alone
        assert await end_of(begun(runner, a_task("nothing_sync"))) == Succeeded(None)
