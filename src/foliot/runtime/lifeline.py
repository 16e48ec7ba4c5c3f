"""How a child learns that its parent is gone, even if the parent was killed with -9.

The parent holds the only write end of a pipe and never writes. The child reads: the end of the
file means that the parent is no more. Works wherever pipes do.
"""

import os
import signal
import threading
from typing import Final, Self

from foliot.runtime.clock import sleep_thread

LEAVE_WITHIN_SECONDS: Final = 0.7


class Lifeline:
    """The parent's side. `read_fd` goes to the children; closing it lets them all go."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self._write_fd = write_fd

    @classmethod
    def open(cls) -> Self:
        return cls(*os.pipe())

    def close(self) -> None:
        os.close(self._write_fd)
        os.close(self.read_fd)


def leave_with_parent(read_fd: int) -> None:
    """Ends this process once its parent is gone: asks by SIGTERM, then goes without asking. A group
    that it leads goes with it.

    A thread, not a task: a process whose event loop is stuck must leave too.
    """
    threading.Thread(target=_watch, args=(read_fd,), name="lifeline", daemon=True).start()


def _watch(read_fd: int) -> None:
    while os.read(read_fd, 1):
        pass
    _send(signal.SIGTERM)
    sleep_thread(LEAVE_WITHIN_SECONDS)
    _send(signal.SIGKILL)


def _send(number: signal.Signals) -> None:
    send = os.killpg if os.getpgrp() == os.getpid() else os.kill
    send(os.getpid(), number)
