"""When an attempt begins: its time runs from there, and what never began has failed at nothing."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from foliot.core.model import ErrorType
from foliot.testing.handlers import Heard, a_task, running
from foliot.worker.hosts import runner as hosts_runner
from foliot.worker.hosts.pool import HostLimits
from foliot.worker.tasks import Crashed, Failed, HandedBack, Succeeded

ZOO = Path(__file__).parent / "zoo"
# A module that starts a thread: each of its processes imports it anew, and takes its time.
SLOW = """
import threading, time
from foliot import App
app = App()
threading.Thread(target=threading.Event().wait, daemon=True).start()
time.sleep(0.6)
@app.job
def nothing_sync(): ...
@app.job
async def nothing(): ...
@app.job
def spin():
    while True: pass
"""
QUICK = """
import os
from foliot import App
app = App()
@app.job
def parent(): return os.getppid()
"""


async def test_the_time_that_a_process_takes_to_come_up_is_not_the_handlers(
    tmp_path: Path,
) -> None:
    target = tmp_path / "slow_shop.py"
    target.write_text(SLOW)
    async with running(target) as runner:
        for handler in ("nothing_sync", "nothing"):
            ended = await runner.run(a_task(handler, timeout_seconds=0.3), Heard())
            assert ended == Succeeded(None)
        late = a_task("spin", timeout_seconds=0.3, cancel_grace_seconds=0.1, run_alone=True)
        async with asyncio.timeout(5):
            ended = await runner.run(late, Heard())
        assert isinstance(ended, Failed)
        assert ended.failure.type is ErrorType.TIMEOUT


async def test_what_never_began_has_not_run_out_of_time(tmp_path: Path) -> None:
    limits = HostLimits(relief=0, begin_seconds=0.3)
    async with running(ZOO / "stubborn.py", limits=limits) as runner:
        keeping = Heard()
        payload = {"path": str(tmp_path / "never")}
        keeper = asyncio.ensure_future(runner.run(a_task("keep_the_loop", payload), keeping))
        await keeping.line("keeping it")
        heard = Heard()
        brief = a_task("nothing", timeout_seconds=0.1, cancel_grace_seconds=0.1)
        assert isinstance(await runner.run(brief, heard), HandedBack)
        assert not heard.starts
        assert isinstance(await keeper, Crashed)


async def test_what_was_told_to_stop_before_it_began_does_not_begin(tmp_path: Path) -> None:
    target = tmp_path / "slower_shop.py"
    target.write_text(SLOW)
    async with running(target, limits=HostLimits(begin_seconds=0.1)) as runner:
        heard = Heard()
        ended = await runner.run(a_task("nothing_sync", timeout_seconds=0.1), heard)
        assert isinstance(ended, HandedBack)
        assert not heard.starts
        # The process has come up meanwhile and takes the next at once.
        assert await runner.run(a_task("nothing_sync", timeout_seconds=0.1), heard) == Succeeded()


async def test_what_a_process_does_not_begin_is_handed_back_however_long_it_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts_runner, "KILL_SECONDS", 0.2)
    target = tmp_path / "orphans_shop.py"
    target.write_text(QUICK)
    async with running(target, limits=HostLimits(begin_seconds=0.3)) as runner:
        parent = await runner.run(a_task("parent"), Heard())
        assert isinstance(parent, Succeeded)
        assert isinstance(parent.result, int)
        os.kill(parent.result, signal.SIGSTOP)
        heard = Heard()
        long = a_task("parent", timeout_seconds=3600, cancel_grace_seconds=0, run_alone=True)
        async with asyncio.timeout(10):
            assert isinstance(await runner.run(long, heard), HandedBack)
        assert not heard.starts
        assert await runner.run(a_task("parent", run_alone=True), Heard()) == parent


async def test_who_has_time_waits_for_the_one_that_keeps_the_loop(tmp_path: Path) -> None:
    limits = HostLimits(relief=0, begin_seconds=0.3)
    async with running(ZOO / "stubborn.py", limits=limits) as runner:
        keeping, heard = Heard(), Heard()
        release = tmp_path / "release"
        keeps = a_task("keep_the_loop", {"path": str(release)})
        keeper = asyncio.ensure_future(runner.run(keeps, keeping))
        await keeping.line("keeping it")
        waits = asyncio.ensure_future(runner.run(a_task("nothing", cancel_grace_seconds=0), heard))
        await keeping.line("has kept the event loop")  # for two seconds
        release.touch()
        assert await keeper == await waits == Succeeded(None)


async def test_who_has_time_waits_for_a_process_that_imports(tmp_path: Path) -> None:
    target = tmp_path / "slowest_shop.py"
    target.write_text(SLOW)
    async with running(target, limits=HostLimits(begin_seconds=0.1)) as runner:
        for handler in ("nothing_sync", "nothing"):
            task = a_task(handler, cancel_grace_seconds=0)
            assert await runner.run(task, Heard()) == Succeeded(None)
