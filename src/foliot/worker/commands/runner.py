"""Makes attempts of commands: checks what may be run, gives it a folder, and has a host run it.

Time, cancellation and the end of processes are the hosts' business, as they are for handlers: a
program is asked to stop with SIGTERM to its group, and killed with all its family after its grace.
"""

import asyncio
import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec
from msgspec.structs import replace

from foliot.core.commands import Programs, check_allowed, check_command
from foliot.core.errors import InvalidInput
from foliot.core.model import CommandTarget, ErrorType, Failure
from foliot.runtime.family import hide_from_own_user
from foliot.worker.commands.ends import OWN_LACK_SECONDS, end_of
from foliot.worker.commands.environment import environment_of, environment_of_hosts
from foliot.worker.commands.program import RUN
from foliot.worker.commands.removal import remove
from foliot.worker.commands.scratch import Scratch
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.tasks import Ended, Failed, HandedBack, Held, Reporter, Succeeded, Task

log = logging.getLogger(__name__)

_MODULE: Final = "foliot.worker.commands.program"


class CommandRunner:
    """The Executor of commands. A loop must be running."""

    def __init__(self, programs: Programs, *, environ: Mapping[str, str]) -> None:
        self._programs = programs
        self._hosts = HandlerRunner([_MODULE], environ=environment_of_hosts(environ))
        self._scratch = Scratch(Path(environ.get("TMPDIR") or tempfile.gettempdir()))

    async def start(self) -> None:
        await asyncio.to_thread(self._scratch.open)
        await self._hosts.start()
        hide_from_own_user()  # programs run as the same user, and this process has secrets
        allowed = ", ".join(sorted(self._programs.paths))
        log.info("commands are allowed: %s", allowed)

    async def run(self, task: Task, reporter: Reporter) -> Ended:
        if task.command is None:
            return HandedBack("it is no command")
        try:
            program = self._allowed(task.command)
        except InvalidInput as refused:
            return Failed(Failure(ErrorType.TARGET_REFUSED, str(refused), do_not_retry=True))
        try:
            folder = self._scratch.folder()
        except OSError as error:
            return Held(OWN_LACK_SECONDS, f"no folder for a command: {error.strerror or error}")
        try:
            order = _order_of(task, task.command, program, folder)
            ended = await self._hosts.run(order, reporter)
        finally:
            await _remove(folder)
        return end_of(ended.result, program) if isinstance(ended, Succeeded) else ended

    def cancel(self, execution_id: UUID, reason: str) -> None:
        self._hosts.cancel(execution_id, reason)

    async def close(self, *, grace_seconds: float) -> None:
        await self._hosts.close(grace_seconds=grace_seconds)
        await asyncio.to_thread(self._scratch.close)

    def _allowed(self, target: CommandTarget) -> str:
        """The program's path. One that leads to the same folder as an allowed one is that one: on
        many systems /bin is a link to /usr/bin."""
        check_command(target)
        path = _in_its_folder(target.argv[0])
        check_allowed(path, Programs(frozenset(map(_in_its_folder, self._programs.paths))))
        return path


async def _remove(folder: Path) -> None:
    """How a command has ended does not depend on it."""
    try:
        await asyncio.to_thread(remove, folder)
    except RuntimeError as error:  # no thread is to be had: it goes with the worker's own folder
        log.warning("%s stays for now: %s", folder, error)


def _in_its_folder(path: str) -> str:
    """The last name stays as it is: under another name a program may do something else."""
    if not path.startswith("/"):
        return path
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - a text as it came


def _order_of(task: Task, target: CommandTarget, program: str, folder: Path) -> Task:
    """The same attempt, as the host of commands takes it."""
    stdin = "" if task.payload is None else msgspec.json.encode(task.payload).decode()
    order = {
        "program": program,
        "argv": list(target.argv),
        "env": environment_of(task, target, str(folder)),
        "folder": str(folder),
        "stdin": stdin,
    }
    return replace(task, handler=RUN, payload=order, command=None, run_alone=True)
