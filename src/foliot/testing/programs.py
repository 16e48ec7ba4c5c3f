"""Commands for tests of what runs them: tasks made up, a runner that leaves nothing behind."""

import asyncio
import ctypes
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

from foliot.core.commands import Programs
from foliot.core.model import CommandTarget, Failure
from foliot.testing.commands import is_alive
from foliot.testing.handlers import a_task
from foliot.worker.commands.runner import CommandRunner
from foliot.worker.tasks import Ended, Failed, Succeeded, Task

SH: Final = "/bin/sh"
GET_DUMPABLE, SET_DUMPABLE = 3, 4
NOBODY: Final = 65_534


@contextmanager
def uneasy_process() -> Iterator[None]:
    """As under `nohup`, and with core files: what is started inherits both."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@asynccontextmanager
async def runner_of(*programs: str, folder: Path) -> AsyncIterator[CommandRunner]:
    secret = {"FOLIOT_DATABASE_URL": "postgresql://me:hunter2@db/x", "AWS_SECRET": "hunter2"}
    environ = dict(os.environ) | secret | {"TMPDIR": str(folder)}
    runner = CommandRunner(Programs(frozenset(programs)), environ=environ)
    with uneasy_process():
        await runner.start()
    try:
        yield runner
    finally:
        await runner.close(grace_seconds=0)
        prctl(SET_DUMPABLE, 1)
    if left := entries(folder):
        raise AssertionError(f"scratch folders are left: {left}")


def command(*argv: str, env: dict[str, str] | None = None, **changes: Any) -> Task:  # noqa: ANN401
    return a_task("", command=CommandTarget(argv, env or {}), **changes)


def script(text: str, *arguments: str, **changes: Any) -> Task:  # noqa: ANN401 - a Task's
    return command(SH, "-c", text, "script", *arguments, **changes)


def failure(ended: Ended) -> Failure:
    if not isinstance(ended, Failed):
        raise AssertionError(ended)  # noqa: TRY004 - it is a test that has failed
    return ended.failure


def result(ended: Ended) -> Any:  # noqa: ANN401 - any JSON
    if not isinstance(ended, Succeeded):
        raise AssertionError(ended)  # noqa: TRY004 - it is a test that has failed
    return ended.result


def prctl(option: int, value: int) -> int:
    return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))


def entries(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def is_there(path: str) -> bool:
    return Path(path).exists()


@contextmanager
def an_ordinary_user() -> Iterator[Path]:
    """A folder of somebody whom permissions bind; nothing is closed to root."""
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(folder, user, -1)
    before = os.geteuid()
    os.seteuid(user)
    try:
        yield folder
    finally:
        os.seteuid(before)
        shutil.rmtree(folder)


def nest(folder: Path, depth: int) -> None:
    """So many folders in each other, and a file in the last; its path may be too long to use."""
    folder.mkdir()
    fd = os.open(folder, os.O_PATH)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_PATH, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=fd))
    os.close(fd)


async def until_gone(pid: int) -> None:
    async with asyncio.timeout(10):
        while is_alive(pid):
            await asyncio.to_thread(os.sched_yield)
