"""The process that imports the user's modules and then does nothing but fork hosts and bury them.

It has no thread, so forking is safe; where importing has started threads, it imports nothing itself
and every host does. Only it kills hosts and notices their end, so a process number is never mixed
up with a later one. What a host leaves behind, in its process group or out of it, is ended with it.
When the worker is gone, which the end of the socket tells, all of it goes.
"""

import gc
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foliot.core.errors import InvalidInput
from foliot.runtime.family import (
    Strays,
    adopt_orphans,
    children,
    die_with_parent,
    end_group,
    let_pass,
)
from foliot.worker.app import Prepared, prepare_all
from foliot.worker.hosts.messages import (
    REQUESTS,
    Exited,
    Fork,
    Forked,
    FrameReader,
    Imported,
    Kill,
    NotImported,
    Ping,
    Pong,
    Reply,
    encode_frames,
)
from foliot.worker.modules import ModuleNotImported, import_apps

_READ_BYTES: Final = 64 * 1024
_DESCRIPTORS_MAX: Final = 4
_STDOUT, _STDERR = 1, 2
OUT_OF_PROCESSES: Final = 75


@dataclass(frozen=True, slots=True)
class Cradle:
    """What a new host starts with."""

    channel: socket.socket
    board_fd: int
    is_async: bool
    is_shared: bool


Grow = Callable[[Cradle, dict[str, Prepared]], None]


class Nursery:
    def __init__(self, channel: socket.socket, grow: Grow, targets: list[str]) -> None:
        self._channel = channel
        self._grow = grow
        self._targets = targets
        self._handlers: dict[str, Prepared] | None = None
        self._hosts: dict[int, int] = {}  # host -> pid
        self._imported_with: frozenset[int] = frozenset()  # processes that modules have started
        self._strays = Strays()
        self._frames = FrameReader()
        self._woken: tuple[socket.socket, socket.socket] | None = None

    def import_modules(self) -> bool:
        """Says what was found. False if there is nothing to do: it failed, or left threads."""
        try:
            self._handlers = prepare_all(import_apps(self._targets))
        except ModuleNotImported as error:
            self._tell(NotImported(error.target, error.reason, error.trace))
            return False
        except InvalidInput as error:
            self._tell(NotImported(", ".join(self._targets), str(error), ""))
            return False
        threads = _count_threads()
        found = {
            name: (str(one.kind), one.is_async) for name, one in sorted(self._handlers.items())
        }
        self._tell(Imported(found, threads))
        return threads == 1

    def serve(self) -> None:
        """Until the worker closes its end, or is no more."""
        self._imported_with = children()
        adopt_orphans()
        gc.collect()
        gc.freeze()  # what is here now stays shared with every host
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what modules have printed is seen now, and once
        woken, waker = socket.socketpair()
        self._woken = (woken, waker)
        for end in self._woken:
            end.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            while self._heed(woken):
                self._bury()
        finally:
            self._end_all()

    def _heed(self, woken: socket.socket) -> bool:
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(woken, select.POLLIN)
        ready = {fd for fd, _ in poll.poll()}
        if woken.fileno() in ready:
            with suppress(BlockingIOError):
                woken.recv(_READ_BYTES)
        if self._channel.fileno() not in ready:
            return True
        try:
            data, descriptors, _, _ = socket.recv_fds(self._channel, _READ_BYTES, _DESCRIPTORS_MAX)
        except ConnectionResetError:  # the worker was killed with an answer of ours unread
            return False
        if not data:
            return False
        for frame in self._frames.feed(data):
            for request in REQUESTS.decode(frame):
                match request:
                    case Fork():
                        self._fork(request, descriptors)
                    case Kill():
                        self._kill(request.host)
                    case Ping():
                        self._tell(Pong(request.number))
        return True

    def _fork(self, request: Fork, descriptors: list[int]) -> None:
        nursery = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._tell(Exited(request.host, OUT_OF_PROCESSES, f"no process: {error.strerror}"))
        else:
            if pid == 0:
                self._become_host(request, descriptors, nursery)
            # Either of the two may be first, and each relies on it.
            with suppress(OSError):
                os.setpgid(pid, pid)
            self._hosts[request.host] = pid
            self._tell(Forked(request.host, pid))
        finally:
            for fd in descriptors:
                os.close(fd)

    def _become_host(self, request: Fork, descriptors: list[int], nursery: int) -> None:
        """Never returns."""
        status = 1
        try:
            os.setpgid(0, 0)
            die_with_parent(nursery)
            adopt_orphans()
            self._forget_nursery()
            if not request.is_shared:
                for fd, standard in zip(descriptors[2:], (_STDOUT, _STDERR), strict=True):
                    os.dup2(fd, standard)
                    os.close(fd)
            channel = socket.socket(fileno=descriptors[0])
            cradle = Cradle(channel, descriptors[1], request.is_async, request.is_shared)
            if self._handlers is None:
                self._handlers = prepare_all(import_apps(self._targets))
            self._grow(cradle, self._handlers)
            status = 0
        except BaseException:  # noqa: BLE001 - whatever it is, this process ends here
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)

    def _forget_nursery(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # A service manager may send it to everybody: the worker alone decides what that means.
        let_pass(signal.SIGTERM)
        self._channel.close()
        for end in self._woken or ():
            end.close()

    def _kill(self, host: int) -> None:
        pid = self._hosts.get(host)
        if pid is not None:
            end_group(pid)

    def _bury(self) -> None:
        for host, pid in list(self._hosts.items()):
            buried, status = os.waitpid(pid, os.WNOHANG)
            if buried:
                del self._hosts[host]
                end_group(pid)  # where nobody can adopt strays, this is what there is
                self._end_strays()
                self._tell(Exited(host, os.waitstatus_to_exitcode(status)))
        self._end_strays()

    def _end_all(self) -> None:
        for pid in self._hosts.values():
            end_group(pid)
        for pid in self._hosts.values():
            os.waitpid(pid, 0)
        self._hosts.clear()
        self._end_strays()

    def _end_strays(self) -> None:
        """Children that nobody here has forked come from a host that is dead."""
        self._strays.end(self._imported_with | frozenset(self._hosts.values()))

    def _tell(self, reply: Reply) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._channel.sendall(encode_frames([reply]))


def _count_threads() -> int:
    """Those that Python does not know of count too."""
    with suppress(OSError):
        return len(list(Path("/proc/self/task").iterdir()))
    return threading.active_count()
