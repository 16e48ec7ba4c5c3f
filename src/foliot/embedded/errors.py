"""What can keep the embedded PostgreSQL from running; each error is one line with the way out."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foliot.core.errors import FoliotError


class EmbeddedError(FoliotError):
    """The embedded PostgreSQL cannot be used as things stand."""


@dataclass(eq=False)
class NoBinaries(EmbeddedError):
    version: int
    platform: str

    def __str__(self) -> str:
        return (
            f"no PostgreSQL {self.version} binaries for {self.platform}: set FOLIOT_DATABASE_URL "
            "to a PostgreSQL 15 or newer instead"
        )


@dataclass(eq=False)
class NoUnprivilegedUser(EmbeddedError):
    tried: tuple[str, ...]

    def __str__(self) -> str:
        return (
            "PostgreSQL does not run as root, and this machine has no user named "
            f"{' or '.join(self.tried)}: create one, or do not start as root"
        )


@dataclass(eq=False)
class DirectoryInUse(EmbeddedError):
    directory: Path
    pid: int | None

    def __str__(self) -> str:
        owner = "another process" if self.pid is None else f"process {self.pid}"
        return f"{self.directory} is in use by {owner}: stop it, or use another data directory"


@dataclass(eq=False)
class OtherVersion(EmbeddedError):
    directory: Path
    found: str
    wanted: int

    def __str__(self) -> str:
        return (
            f"{self.directory} was made by PostgreSQL {self.found} and this is PostgreSQL "
            f"{self.wanted}: use another data directory, or dump this one with PostgreSQL "
            f"{self.found} and restore the dump into a new one"
        )


@dataclass(eq=False)
class NoCluster(EmbeddedError):
    path: Path

    def __str__(self) -> str:
        return (
            f"{self.path.parent} is not a Foliot data directory: its {self.path.name} holds no "
            "cluster of PostgreSQL (use another data directory)"
        )


@dataclass(eq=False)
class NotADirectory(EmbeddedError):
    path: Path

    def __str__(self) -> str:
        return f"{self.path} is not a directory: use another data directory"


@dataclass(eq=False)
class NotWritable(EmbeddedError):
    path: Path

    def __str__(self) -> str:
        return f"{self.path} cannot be written: make it writable, or use another data directory"


@dataclass(eq=False)
class DiskFull(EmbeddedError):
    path: Path

    def __str__(self) -> str:
        return f"no space left on the disk of {self.path}: free some, or use another data directory"


@dataclass(eq=False)
class PointerDamaged(EmbeddedError):
    path: Path

    def __str__(self) -> str:
        return (
            f"{self.path} does not name the cluster of this data directory: put the file back, "
            "or use another data directory"
        )


@dataclass(eq=False)
class SecretRefused(EmbeddedError):
    path: Path

    def __str__(self) -> str:
        return (
            f"the password in {self.path} does not open the database: put the file back that "
            "belongs to it, or use another data directory"
        )


@dataclass(eq=False)
class ProgramFailed(EmbeddedError):
    """`initdb` or `postgres` ended by itself; `last_lines` are what it said last."""

    program: str
    status: int
    last_lines: tuple[str, ...]
    log: Path | None = None

    def __str__(self) -> str:
        said = " | ".join(self.last_lines) or "it said nothing"
        where = f" (log: {self.log})" if self.log else ""
        return f"{self.program} ended with status {self.status}: {said}{where}"


@dataclass(eq=False)
class NotReadyInTime(EmbeddedError):
    waited_seconds: float
    log: Path

    def __str__(self) -> str:
        return f"PostgreSQL was not ready after {self.waited_seconds:.0f} s (log: {self.log})"


@dataclass(eq=False)
class NotStarted(EmbeddedError):
    directory: Path

    def __str__(self) -> str:
        return f"the PostgreSQL of {self.directory} has not been started"


@contextmanager
def disk_errors_named(path: Path) -> Iterator[None]:
    """Says in our words what the file system says in numbers."""
    try:
        yield
    except OSError as error:
        subject = Path(error.filename) if isinstance(error.filename, str) else path
        match error.errno:
            case errno.ENOSPC | errno.EDQUOT:
                raise DiskFull(path) from error
            case errno.EROFS | errno.EACCES | errno.EPERM:
                raise NotWritable(subject) from error
            case errno.ENOTDIR | errno.EEXIST:
                raise NotADirectory(subject) from error
            case _:
                raise
