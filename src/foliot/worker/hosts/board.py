"""A few bytes that the worker and one host both see, whatever the host is busy with.

The host writes the ticket of the attempt whose code runs at this very moment: should the host die
or stand still, that is whose doing it was. The worker writes whether a host that runs one attempt
at a time should stop: a flag needs nobody to read a message.
"""

import mmap
import os
import tempfile
from typing import Final, Self

_SIZE: Final = mmap.PAGESIZE
_RUNNING, _STOP = 0, 1


class Board:
    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, _SIZE)
        self._cells = memoryview(self._memory).cast("Q")

    @classmethod
    def open(cls) -> tuple[Self, int]:
        """A new board, and the descriptor by which another process gets to see it."""
        fd = _nameless_file()
        try:
            os.ftruncate(fd, _SIZE)
            return cls(fd), fd
        except OSError:
            os.close(fd)
            raise

    @property
    def running(self) -> int:
        """The ticket of what runs now, or 0."""
        return self._cells[_RUNNING]

    @running.setter
    def running(self, ticket: int) -> None:
        self._cells[_RUNNING] = ticket

    @property
    def should_stop(self) -> bool:
        return self._cells[_STOP] != 0

    @should_stop.setter
    def should_stop(self, value: bool) -> None:
        self._cells[_STOP] = int(value)

    def close(self) -> None:
        self._cells.release()
        self._memory.close()


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("foliot")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
