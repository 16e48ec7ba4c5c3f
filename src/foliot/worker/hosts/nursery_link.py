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
    Ping,
    Pong,
    encode_frames,
)
from foliot.worker.hosts.wire import Wire
from foliot.worker.modules import ModuleNotImported

log = logging.getLogger(__name__)

CLOSE_SECONDS_MAX: Final = 5.0


class NotWanted(OSError):
    """It was closed while it was being started."""


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
        self.is_cold = False  # hosts import for themselves
        self._is_wanted = False
        self._is_ready = False
        self._loop = asyncio.get_running_loop()
        self._pings = 0
        self._owes_since: float | None = None  # an answer to the last of them
        self._woken_at: float | None = None  # since it owes that
        self.is_given_up = False  # it was killed from here
        self.pids: dict[int, int] = {}

    @property
    def is_alive(self) -> bool:
        """Whether it forks hosts. While it imports it may yet fail, and of hosts that were asked
        for meanwhile nobody would ever hear."""
        return self._is_ready

    async def start(self) -> Imported:
        """Raises ModuleNotImported, NotWanted. Where importing leaves threads, nobody may fork that
        process: then a second one is started that leaves the importing to its hosts."""
        imported = await self._start()
        self._is_ready = self._wire is not None  # it may have died since it said so
        return imported

    def fork(self, request: Fork, descriptors: Sequence[int]) -> None:
        """The host may be spoken to at once, before it is born. Raises OSError."""
        if self._channel is None or not self._is_ready:
            raise OSError("there is no process to fork from")
        socket.send_fds(self._channel, [encode_frames([request])], list(descriptors))

    def kill(self, host: int) -> None:
        """Its end may be long in coming: that the nursery is at work, it says at once."""
        if self._wire is not None:
            self._pings += 1
            if self._owes_since is None:
                self._owes_since = self._loop.time()
            self._wire.say(Kill(host))
            self._wire.say(Ping(self._pings))

    def rouse(self, after_seconds: float) -> None:
        """If it has owed an answer for so long, somebody has stopped it, and it is woken. If that
        is not it, it has to go as long after that."""
        now = self._loop.time()
        pid = self._process.pid if self._process is not None else None
        if pid is None or self._owes_since is None or now - self._owes_since < after_seconds:
            return
        if self._woken_at is None:
            log.error("the process that starts handlers stands still: waking it")
            self._woken_at = now
            os.kill(pid, signal.SIGCONT)
        elif now - self._woken_at >= after_seconds:
            log.error("the process that starts handlers cannot be woken: ending it")
            self.is_given_up = True
            os.kill(pid, signal.SIGKILL)

    async def close(self) -> None:
        """No process is left, neither of the nursery nor of its hosts. A start that is under way
        fails."""
        hosts = tuple(self.pids.values())
        is_importing = self._imported is not None
        self._is_wanted = False
        self._hang_up()
        if self._process is None:
            return
        process, self._process = self._process, None
        if is_importing:  # that has no end that could be waited for
            process.kill()
        try:
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            _end_orphans(hosts)

    async def _start(self) -> Imported:
        await self._spawn("cold" if self.is_cold else "warm")
        if self.is_cold:
            return Imported({}, 0)
        try:
            imported = await self._hear_imported()
        except BaseException:
            if self._process is not None:  # importing has no end that could be waited for
                self._process.kill()
            await self.close()
            raise
        if imported.threads > 1:
            self.is_cold = True
            await self.close()
            await self._spawn("cold")
        return imported

    async def _spawn(self, mode: str) -> None:
        self._is_wanted = True
        self.is_given_up = False
        ours, theirs = socket.socketpair()
        with theirs:
            argv = [sys.executable, "-P", "-m", "foliot.worker.hosts"]
            argv += [str(theirs.fileno()), str(os.getpid()), mode, *self._targets]
            process = ChildProcess(argv, environ=self._environ, pass_fds=[theirs.fileno()])
            try:
                await process.start()
            except BaseException:
                ours.close()
                raise
        if not self._is_wanted:  # closed before there was anything to close
            ours.close()
            process.kill()
            await process.wait()
            raise NotWanted
        self._process = process
        self._channel = ours
        self._wire = Wire(ours, self._hear, self._lose, _never_refused)

    async def _hear_imported(self) -> Imported:
        self._imported = asyncio.get_running_loop().create_future()
        try:
            return await self._imported
        except ConnectionError:
            if not self._is_wanted:
                raise NotWanted from None
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
                case Pong():
                    is_last = reply.number == self._pings
                    self._owes_since = None if is_last else self._loop.time()
                    self._woken_at = None
                case Imported():
                    if self._imported is not None and not self._imported.done():
                        self._imported.set_result(reply)
                case NotImported():
                    if self._imported is not None and not self._imported.done():
                        error = ModuleNotImported(reply.target, reply.reason, reply.trace)
                        self._imported.set_exception(error)

    def _lose(self) -> None:
        _end_orphans(tuple(self.pids.values()))
        was_ready = self._is_ready
        self._hang_up()
        if was_ready:  # else there is no host yet, and who has started it hears of it
            self._on_lost()

    def _hang_up(self) -> None:
        self._is_ready = False
        self._owes_since = self._woken_at = None
        if self._imported is not None and not self._imported.done():
            self._imported.set_exception(ConnectionError())
        if self._wire is not None:
            self._wire.close()
        self._wire = self._channel = None
        self.pids.clear()


def _end_orphans(hosts: tuple[int, ...]) -> None:
    """Hosts die with the nursery, and it would have ended what they leave behind."""
    for pid in hosts:
        end_group(pid)


def _never_refused(message: Kill | Ping, reason: str) -> None:
    raise AssertionError(f"{message} cannot be written: {reason}")
