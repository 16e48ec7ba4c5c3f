"""The folder of one running server: it belongs to one process at a time.

`up.lock` is held by the kernel for as long as its owner lives, so nothing is left to clean up
after a crash. `server.json` says what runs where while it runs; it may hold a password, so only
its owner can read it, and it is replaced in one step, so no reader sees half of it.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from foliot.core.errors import FoliotError
from foliot.runtime.owner_lock import OwnedByAnother, OwnerLock

LOCK: Final = "up.lock"
SERVER_FILE: Final = "server.json"


@dataclass(frozen=True)
class RunningRole:
    role: str
    pid: int | None


@dataclass(frozen=True)
class RunningServer:
    url: str
    pid: int
    database_url: str
    roles: tuple[RunningRole, ...]


@dataclass(eq=False)
class DataDirectoryInUse(FoliotError):
    directory: Path
    pid: int | None

    def __str__(self) -> str:
        owner = f"process {self.pid}" if self.pid else "another process"
        return (
            f"{self.directory} is in use by {owner}"
            " (stop that one, or choose another folder with --data-dir)"
        )


@dataclass(eq=False)
class DataDirectoryUnusable(FoliotError):
    directory: Path
    reason: str

    def __str__(self) -> str:
        return f"cannot write to {self.directory}: {self.reason} (choose one with --data-dir)"


@dataclass(eq=False)
class ServerFileUnreadable(FoliotError):
    """Somebody's server runs here, and not ours: the file is for its owner's eyes."""

    path: Path

    def __str__(self) -> str:
        return (
            f"cannot read {self.path}: permission denied"
            " (run this as the user who started the server)"
        )


@contextmanager
def owned(directory: Path) -> Iterator[None]:
    """Makes the folder if need be and owns it for the length of the block."""
    try:
        _make(directory)
        lock = OwnerLock.take(directory / LOCK, mode=0o644)
    except OwnedByAnother as owner:
        raise DataDirectoryInUse(directory, owner.pid) from None
    except OSError as error:
        raise DataDirectoryUnusable(directory, _words(error)) from None
    try:
        yield
    finally:
        lock.release()


def write_server_file(directory: Path, server: RunningServer) -> None:
    path = directory / SERVER_FILE
    draft = path.with_suffix(".draft")
    try:
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(json.dumps(asdict(server), indent=2) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise DataDirectoryUnusable(directory, _words(error)) from None


def read_server_file(directory: Path) -> RunningServer | None:
    """What the folder's server says of itself; None where none runs or ever ran."""
    try:
        facts = json.loads((directory / SERVER_FILE).read_text(encoding="utf-8"))
        roles = tuple(RunningRole(role["role"], role["pid"]) for role in facts["roles"])
        return RunningServer(facts["url"], facts["pid"], facts["database_url"], roles)
    except PermissionError:
        raise ServerFileUnreadable(directory / SERVER_FILE) from None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_server_file(directory: Path) -> None:
    (directory / SERVER_FILE).unlink(missing_ok=True)


def _make(directory: Path) -> None:
    """Root lets others pass through but not look: the database runs as another user inside."""
    if not directory.is_dir():
        directory.mkdir(parents=True)
        directory.chmod(0o711 if os.geteuid() == 0 else 0o700)


def _words(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
