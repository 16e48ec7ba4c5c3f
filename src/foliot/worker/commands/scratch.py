"""A folder for each command to be in, removed when it is over.

All of them are in one folder per worker, which stays locked while the worker lives. What a worker
that was killed has left is removed by the next one to start.
"""

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from foliot.worker.commands.removal import remove

PREFIX: Final = "foliot-commands-"
# Until it is locked it goes by a name that nobody looks for.
_NEW: Final = "foliot-new-"


class Scratch:
    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._lock: int | None = None
        self.root: Path | None = None

    def open(self) -> None:
        """Raises OSError."""
        self._remove_abandoned()
        new = Path(tempfile.mkdtemp(prefix=_NEW, dir=self._parent))
        self._lock = _locked(new)
        self.root = new.rename(self._parent / (PREFIX + new.name.removeprefix(_NEW)))

    def folder(self) -> Path:
        """A new and empty one. Raises OSError."""
        if self.root is None:
            raise OSError("there is no place for scratch folders")
        # Somebody may have tidied up around us, or a program have shut what it is in.
        self.root.mkdir(mode=0o700, exist_ok=True)
        self.root.chmod(0o700)
        return Path(tempfile.mkdtemp(dir=self.root))

    def close(self) -> None:
        if self.root is not None:
            remove(self.root)
        if self._lock is not None:
            os.close(self._lock)
        self.root = self._lock = None

    def _remove_abandoned(self) -> None:
        for path in self._parent.glob(f"{PREFIX}*"):
            with suppress(OSError):
                if path.lstat().st_uid != os.getuid():
                    continue
                lock = _locked(path)
                if lock is None:
                    continue
                try:
                    remove(path)
                finally:
                    os.close(lock)


def _locked(folder: Path) -> int | None:
    """None if somebody else has it."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd
