"""A folder for each command to be in, removed when it is over.

All of them are in one folder per worker, which stays locked while the worker lives. What a worker
that was killed has left is removed by the next one to start.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

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
        # Somebody may have tidied up around us.
        self.root.mkdir(mode=0o700, exist_ok=True)
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
                if lock is not None:
                    remove(path)
                    os.close(lock)


def remove(folder: Path) -> None:
    """Also what its owner may not enter; what cannot be removed stays."""
    shutil.rmtree(folder, onerror=_open_and_retry)


def _locked(folder: Path) -> int | None:
    """None if somebody else has it."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def _open_and_retry(function: Callable[..., Any], path: str, _: object) -> None:
    """A folder without permissions keeps its entries until it has some."""
    with suppress(OSError):
        if Path(path).is_symlink():
            return
        Path(path).parent.chmod(0o700)
        if Path(path).is_dir():
            Path(path).chmod(0o700)
            shutil.rmtree(path, ignore_errors=True)
        elif function in (os.unlink, os.remove):
            Path(path).unlink()
