"""Commands as real processes: they are stopped, and nothing of their family outlives them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from foliot.core.model import ErrorType
from foliot.testing.commands import is_alive
from foliot.testing.handlers import Heard
from foliot.testing.programs import (
    SH,
    entries,
    failure,
    result,
    runner_of,
    script,
    until_gone,
)
from foliot.worker.commands.runner import CommandRunner
from foliot.worker.tasks import Cancelled, Crashed, HandedBack, LogSource

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CommandRunner]:
    async with runner_of("*", folder=tmp_path_factory.mktemp("scratch")) as runner:
        yield runner


@pytest.mark.parametrize(
    "text",
    [
        "while :; do :; done",
        "trap '' TERM; while :; do :; done",
        "trap '' TERM; sleep 1000 & sleep 1000",
    ],
)
async def test_what_runs_out_of_time_is_killed(runner: CommandRunner, text: str) -> None:
    task = script(text, timeout_seconds=0.3, cancel_grace_seconds=0.2)
    async with asyncio.timeout(15):
        found = failure(await runner.run(task, Heard()))
    assert found.type is ErrorType.TIMEOUT


async def test_a_program_is_asked_before_it_is_killed(runner: CommandRunner) -> None:
    heard = Heard()
    text = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    task = script(text)
    running = asyncio.ensure_future(runner.run(task, heard))
    await heard.line("ready")
    runner.cancel(task.execution_id, "enough")
    async with asyncio.timeout(15):
        assert await running == Cancelled("enough")
    assert await heard.line("bye")


# Each says the number of one that would outlive the program, as soon as that one runs.
FAMILIES = {
    "children": "sleep 1000 & echo $!",
    "deaf children": "mkfifo p; sh -c 'trap \"\" TERM HUP; echo $$ > p; while :; do sleep 9; done'"
    " & read pid < p; echo $pid",
    "another session": "mkfifo p; setsid sh -c 'echo $$ > p; exec sleep 1000' &"
    " read pid < p; echo $pid",
    "forked twice": "mkfifo p; (setsid sh -c 'sh -c \"echo \\$\\$ > p; exec sleep 1000\" & exit 0'"
    " &); read pid < p; echo $pid",
}


@pytest.mark.parametrize("family", FAMILIES)
async def test_what_a_program_leaves_behind_ends_with_it(
    runner: CommandRunner, family: str
) -> None:
    heard = Heard()
    async with asyncio.timeout(15):
        ended = await runner.run(script(FAMILIES[family]), heard)
    result(ended)
    assert not is_alive(int(heard.lines(LogSource.STDOUT)[0]))


@pytest.mark.parametrize("family", FAMILIES)
async def test_the_whole_family_is_killed_when_it_does_not_stop(
    runner: CommandRunner, family: str
) -> None:
    heard = Heard()
    text = f"trap '' TERM; {FAMILIES[family]}; while :; do sleep 0.05; done"
    task = script(text, cancel_grace_seconds=0.1)
    running = asyncio.ensure_future(runner.run(task, heard))
    pid = int(await heard.line(""))
    assert is_alive(pid)
    runner.cancel(task.execution_id, "enough")
    async with asyncio.timeout(15):
        assert await running == Cancelled("enough")
    assert not is_alive(pid)


async def test_it_ends_with_its_worker_and_is_handed_back(tmp_path: Path) -> None:
    heard = Heard()
    async with runner_of("*", folder=tmp_path) as runner:
        task = script("trap '' TERM; echo $$; while :; do sleep 0.05; done")
        running = asyncio.ensure_future(runner.run(task, heard))
        pid = int(await heard.line(""))
    assert isinstance(await running, HandedBack)
    assert not is_alive(pid)


async def test_it_ends_with_the_process_that_starts_hosts(runner: CommandRunner) -> None:
    heard = Heard()
    task = script("trap '' TERM; echo $$ $(ps -o ppid= $PPID); while :; do sleep 0.05; done")
    running = asyncio.ensure_future(runner.run(task, heard))
    pid, nursery = map(int, (await heard.line("")).split())
    os.kill(nursery, signal.SIGKILL)
    async with asyncio.timeout(15):
        ended = await running
    assert isinstance(ended, Crashed | HandedBack), ended
    await until_gone(pid)
    assert result(await runner.run(script("echo again"), Heard()))["stdout"] == "again\n"


WORKER = """
import asyncio, json, os, sys
from foliot.core.commands import Programs
from foliot.core.model import CommandTarget
from foliot.testing.handlers import Heard, a_task
from foliot.worker.commands.runner import CommandRunner

async def main():
    runner = CommandRunner(Programs(frozenset({"*"})), environ=os.environ)
    await runner.start()
    heard = Heard()
    task = a_task("", command=CommandTarget(tuple(json.loads(sys.argv[1]))))
    running = asyncio.ensure_future(runner.run(task, heard))
    for _ in range(2):
        await heard.line("ready")
    print(*[word for line in heard.lines() for word in line.split()], flush=True)
    await running

asyncio.run(main())
"""


async def test_it_dies_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    text = "trap '' TERM HUP; setsid sleep 1000 & echo $! $$ ready; while :; do sleep 0.05; done"
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WORKER, json.dumps([SH, "-c", text])),
        env=dict(os.environ) | {"TMPDIR": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert worker.stdout is not None
    async with asyncio.timeout(20):
        pids = [int(word) for word in (await worker.stdout.readline()).split()[:2]]
    assert all(map(is_alive, pids))
    worker.kill()
    await worker.wait()
    for pid in pids:
        await until_gone(pid)
    # What it has left is removed by the next one.
    assert entries(tmp_path)
    async with runner_of("*", folder=tmp_path):
        pass
