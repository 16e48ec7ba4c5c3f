"""One owner per data directory: a locked file that the kernel lets go when its owner dies."""

import fcntl
import os
from pathlib import Path
from typing import Self

from foliot.embedded.errors import DirectoryInUse


class OwnerLock:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def take(cls, path: Path) -> Self:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.write(fd, f"{os.getpid()}\n".encode())
        except BlockingIOError:
            said = os.read(fd, 32).decode(errors="replace").strip()
            os.close(fd)
            owner = int(said) if said.isdecimal() else None
            raise DirectoryInUse(path.parent, owner) from None
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    def release(self) -> None:
        os.close(self._fd)
