"""One owner at a time: a locked file that the kernel lets go when its owner dies.

The file holds the owner's process number, for those who find it locked. No symbolic link is
followed: root would empty whatever a planted one points at.
"""

import fcntl
import os
from pathlib import Path
from typing import Self


class OwnedByAnother(Exception):
    """Somebody else holds the lock; `pid` is what the owner wrote, None while it writes."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(pid)
        self.pid = pid


class OwnerLock:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def take(cls, path: Path, *, mode: int = 0o600) -> Self:
        """At once or not at all; `mode` is that of a file that is not there yet."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            written = os.pread(fd, 32, 0).strip()
            os.close(fd)
            raise OwnedByAnother(int(written) if written.isdigit() else None) from None
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    def release(self) -> None:
        os.close(self._fd)
