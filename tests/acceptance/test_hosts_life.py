"""How the processes of handlers come into being, are renewed, and end."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from foliot.testing.commands import eventually
from foliot.testing.handlers import MARK, Heard, a_task, marked_processes, running
from foliot.worker.hosts.pool import HostLimits
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.modules import ModuleNotImported
from foliot.worker.tasks import HandedBack, Succeeded

ZOO = Path(__file__).parent / "zoo"
HEAD = "from foliot import App\napp = App()\n"
# A worker that has something running in each kind of process, and says so.
A_WORKER = f"""
import asyncio
from foliot.testing.handlers import Heard, a_task
from foliot.worker.hosts.runner import HandlerRunner

async def main():
    runner = HandlerRunner([{str(ZOO / "poison.py")!r}])
    await runner.start()
    waits, forks = Heard(), Heard()
    attempts = asyncio.gather(
        runner.run(a_task("wait"), waits), runner.run(a_task("fork_much", {{"count": 3}}), forks)
    )
    await waits.line("waiting")
    await forks.line("forked")
    print("all there", flush=True)
    await attempts

asyncio.run(main())
"""


async def not_started(*targets: str) -> ModuleNotImported:
    mark = str(uuid4())
    runner = HandlerRunner(targets, environ=dict(os.environ) | {MARK: mark})
    with pytest.raises(ModuleNotImported) as refused:
        await runner.start()
    assert not marked_processes(mark)
    return refused.value


async def pid_of(runner: HandlerRunner, handler: str) -> object:
    ended = await runner.run(a_task(handler), Heard())
    assert isinstance(ended, Succeeded), ended
    return ended.result


async def test_a_module_that_fails_to_import_says_where(tmp_path: Path) -> None:
    target = tmp_path / "broken_shop.py"
    target.write_text(f"{HEAD}\ndef open_shop():\n    return 1 / 0\n\nopen_shop()\n")
    error = await not_started(str(target))
    assert str(error) == f"cannot import {target}: ZeroDivisionError: division by zero"
    assert 'broken_shop.py", line 5, in open_shop' in error.trace


async def test_a_module_that_ends_its_process_is_named(tmp_path: Path) -> None:
    target = tmp_path / "leaving_shop.py"
    target.write_text("import os\nos._exit(5)\n")
    assert "importing it ended the process (status 5)" in str(await not_started(str(target)))


async def test_a_module_that_is_not_there_is_named() -> None:
    assert "there is no module no_such_shop" in str(await not_started("no_such_shop"))


async def test_a_name_given_twice_stops_the_start_with_both_places(tmp_path: Path) -> None:
    for name in ("first_shop", "second_shop"):
        (tmp_path / f"{name}.py").write_text(f"{HEAD}\n@app.job\ndef sell(): ...\n")
    error = await not_started(str(tmp_path / "first_shop.py"), str(tmp_path / "second_shop.py"))
    assert "two handlers are named 'sell': first_shop.py:4" in str(error)
    assert "second_shop.py:4" in str(error)


async def test_a_parameter_of_a_type_that_json_cannot_become_stops_the_start(
    tmp_path: Path,
) -> None:
    target = tmp_path / "odd_shop.py"
    target.write_text(f"{HEAD}\nclass Till: ...\n\n@app.job\ndef sell(till: Till): ...\n")
    assert "handler sell at odd_shop.py:6" in str(await not_started(str(target)))


async def test_where_importing_starts_threads_every_process_imports_for_itself(
    tmp_path: Path,
) -> None:
    target = tmp_path / "threaded_shop.py"
    target.write_text(
        f"import os, threading\n{HEAD}\nimporter = os.getpid()\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "@app.job\ndef imports_itself(): return importer == os.getpid()\n"
        "@app.job\nasync def imports_too(): return importer == os.getpid()\n"
    )
    async with running(target) as runner:
        assert await pid_of(runner, "imports_itself") is True
        assert await pid_of(runner, "imports_too") is True


async def test_what_a_module_prints_is_printed_once_and_at_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    target = tmp_path / "loud_shop.py"
    target.write_text(f"{HEAD}\nprint('open')\n@app.job\nasync def sell(): print('sold')\n")
    async with running(target) as runner:
        await pid_of(runner, "sell")
        assert capfd.readouterr().out == "open\n"
        await pid_of(runner, "sell")
    assert not capfd.readouterr().out


async def test_a_process_is_renewed_after_many_runs() -> None:
    async with running(ZOO / "tame.py", limits=HostLimits(runs=2)) as runner:
        pids = [await pid_of(runner, "pid") for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]


async def test_no_more_processes_wait_for_work_than_they_may() -> None:
    mark = str(uuid4())
    runner = HandlerRunner(
        [str(ZOO / "tame.py")],
        environ=dict(os.environ) | {MARK: mark},
        limits=HostLimits(idle=1),
    )
    await runner.start()
    await asyncio.gather(*(pid_of(runner, "pid") for _ in range(4)))
    await asyncio.to_thread(
        eventually,
        lambda: len(marked_processes(mark)) == 2,
        what="the nursery and one idle process",
    )
    await runner.close(grace_seconds=0)


async def test_several_shared_hosts_share_the_load() -> None:
    async with running(ZOO / "tame.py", limits=HostLimits(shared=2)) as runner:
        for _ in range(2):
            pids = await asyncio.gather(*(pid_of(runner, "pid_on_loop") for _ in range(2)))
            assert len(set(pids)) == 2


async def test_closing_waits_for_its_grace_then_hands_back() -> None:
    mark = str(uuid4())
    runner = HandlerRunner([str(ZOO / "stubborn.py")], environ=dict(os.environ) | {MARK: mark})
    await runner.start()
    listening, deaf = Heard(), Heard()
    looks = a_task("look")
    attempts = [
        asyncio.ensure_future(runner.run(looks, listening)),
        asyncio.ensure_future(runner.run(a_task("spin"), deaf)),
    ]
    await listening.line("looking")
    await deaf.line("at it")
    closing = asyncio.ensure_future(runner.close(grace_seconds=0.5))
    await asyncio.sleep(0)
    assert isinstance(await runner.run(a_task("nothing"), Heard()), HandedBack)
    runner.cancel(looks.execution_id, "time to go")
    ended = await asyncio.gather(*attempts)
    assert not isinstance(ended[0], HandedBack)
    assert ended[1] == HandedBack("the worker is stopping")
    await closing
    assert not marked_processes(mark)


async def test_when_the_worker_is_killed_everything_goes_with_it() -> None:
    mark = str(uuid4())
    worker = subprocess.Popen(  # noqa: ASYNC220 - it is killed, not waited for
        [sys.executable, "-c", A_WORKER],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | {MARK: mark},
    )
    with worker:
        assert worker.stdout is not None
        assert await asyncio.to_thread(worker.stdout.readline) == "all there\n"
        # The worker, the nursery, a shared host, a sync one and the three that it has forked.
        assert len(marked_processes(mark)) == 7
        worker.send_signal(signal.SIGKILL)
    await asyncio.to_thread(
        eventually, lambda: not marked_processes(mark), what="everything gone", within_seconds=5
    )


def test_when_the_worker_is_killed_with_an_answer_unread_nobody_cries_out() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-P", "-m", "foliot.worker.hosts", str(theirs.fileno())]
        command += [str(os.getpid()), "warm", str(ZOO / "tame.py")]
        fds = (theirs.fileno(),)
        with subprocess.Popen(command, pass_fds=fds, stderr=subprocess.PIPE) as nursery:
            theirs.close()
            select.select([ours], [], [])
            ours.close()
            _, said = nursery.communicate(timeout=20)
    assert (nursery.returncode, said) == (0, b"")
