"""The worker's side of the nursery: starts it, asks for hosts, hears of their end."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from foliot.runtime.child import ChildProcess
from foliot.runtime.family import end_group
from foliot.worker.hosts.messages import (
    REPLIES,
    Exited,
    Fork,
    Forked,
    Imported,
    Kill,
    NotImported,
    encode_frames,
)
from foliot.worker.hosts.wire import Wire
from foliot.worker.modules import ModuleNotImported

log = logging.getLogger(__name__)

CLOSE_SECONDS_MAX: Final = 5.0


class NurseryLink:
    def __init__(
        self,
        targets: Sequence[str],
        environ: Mapping[str, str],
        on_exited: Callable[[int, int, str], None],
        on_lost: Callable[[], None],
    ) -> None:
        """`on_exited` is told host, status and reason; `on_lost` that the nursery itself is gone
        without having been asked to."""
        self._targets = tuple(targets)
        self._environ = dict(environ)
        self._on_exited = on_exited
        self._on_lost = on_lost
        self._process: ChildProcess | None = None
        self._channel: socket.socket | None = None
        self._wire: Wire | None = None
        self._imported: asyncio.Future[Imported] | None = None
        self._is_cold = False
        self.pids: dict[int, int] = {}

    @property
    def is_alive(self) -> bool:
        return self._wire is not None

    async def start(self) -> Imported:
        """Raises ModuleNotImported. Where importing leaves threads, nobody may fork that process:
        then a second one is started that leaves the importing to its hosts."""
        await self._spawn("cold" if self._is_cold else "warm")
        if self._is_cold:
            return Imported({}, 0)
        try:
            imported = await self._hear_imported()
        except BaseException:
            if self._process is not None:  # importing has no end that could be waited for
                self._process.kill()
            await self.close()
            raise
        if imported.threads > 1:
            self._is_cold = True
            await self.close()
            await self._spawn("cold")
        return imported

    def fork(self, request: Fork, descriptors: Sequence[int]) -> None:
        """The host may be spoken to at once, before it is born. Raises OSError."""
        if self._channel is None:
            raise OSError("there is no process to fork from")
        socket.send_fds(self._channel, [encode_frames([request])], list(descriptors))

    def kill(self, host: int) -> None:
        if self._wire is not None:
            self._wire.say(Kill(host))

    def rouse(self, *, is_hopeless: bool) -> None:
        """It does not do as told: somebody has stopped it. If that is not it, it has to go."""
        pid = self._process.pid if self._process is not None else None
        if pid is None:
            return
        log.error("the process that starts handlers stands still: waking it")
        os.kill(pid, signal.SIGKILL if is_hopeless else signal.SIGCONT)

    async def close(self) -> None:
        """No process is left, neither of the nursery nor of its hosts."""
        hosts = tuple(self.pids.values())
        self._hang_up()
        if self._process is None:
            return
        process, self._process = self._process, None
        try:
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            _end_orphans(hosts)

    async def _spawn(self, mode: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            argv = [sys.executable, "-P", "-m", "foliot.worker.hosts"]
            argv += [str(theirs.fileno()), str(os.getpid()), mode, *self._targets]
            process = ChildProcess(argv, environ=self._environ, pass_fds=[theirs.fileno()])
            await process.start()
        self._process = process
        self._channel = ours
        self._wire = Wire(ours, self._hear, self._lose, _never_refused)

    async def _hear_imported(self) -> Imported:
        self._imported = asyncio.get_running_loop().create_future()
        try:
            return await self._imported
        except ConnectionError:
            status = await self._process.wait() if self._process else 0
            ended = f"status {status}" if status >= 0 else f"signal {-status}"
            raise ModuleNotImported(
                ", ".join(self._targets), f"importing it ended the process ({ended})"
            ) from None
        finally:
            self._imported = None

    def _hear(self, frame: bytes) -> None:
        for reply in REPLIES.decode(frame):
            match reply:
                case Forked():
                    self.pids[reply.host] = reply.pid
                case Exited():
                    self.pids.pop(reply.host, None)
                    self._on_exited(reply.host, reply.status, reply.reason)
                case Imported():
                    if self._imported is not None and not self._imported.done():
                        self._imported.set_result(reply)
                case NotImported():
                    if self._imported is not None and not self._imported.done():
                        error = ModuleNotImported(reply.target, reply.reason, reply.trace)
                        self._imported.set_exception(error)

    def _lose(self) -> None:
        _end_orphans(tuple(self.pids.values()))
        self._hang_up()
        if self._imported is not None and not self._imported.done():
            self._imported.set_exception(ConnectionError())
        else:
            self._on_lost()

    def _hang_up(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire = self._channel = None
        self.pids.clear()


def _end_orphans(hosts: tuple[int, ...]) -> None:
    """Hosts die with the nursery, and it would have ended what they leave behind."""
    for pid in hosts:
        end_group(pid)


def _never_refused(message: Kill, reason: str) -> None:
    raise AssertionError(f"{message} cannot be written: {reason}")
