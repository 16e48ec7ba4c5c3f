"""Why PostgreSQL ended by itself, from what it said last and what the disk has left."""

import os
from pathlib import Path
from typing import Final

from foliot.embedded.errors import DiskFull, EmbeddedError, ProgramFailed
from foliot.embedded.place import Place

NO_SPACE: Final = "No space left on device"
STILL_HELD: Final = (
    "pre-existing shared memory block",
    'lock file "postmaster.pid" already exists',
)
HANDED_OVER: Final = ("redirecting log output", "Future log output")

# One write-ahead log segment: with less, PostgreSQL cannot start, and perhaps cannot say so.
FREE_BYTES_MIN: Final = 16 * 1024 * 1024

TAIL_BYTES_MAX: Final = 8192
LAST_LINES_MAX: Final = 5


def failure_of(place: Place, status: int) -> EmbeddedError:
    log, lines = place.startup_log, _lines_before_the_log(place)
    is_full = False
    if not lines:
        log, lines = _newest_log(place)
        disk = os.statvfs(place.home)
        is_full = disk.f_bavail * disk.f_frsize < FREE_BYTES_MIN
    if is_full or any(NO_SPACE in line for line in lines):
        return DiskFull(place.home)
    return ProgramFailed("postgres", status, lines, log)


def is_still_held(place: Place) -> bool:
    """What a killed server or a killed owner left running has not let go of the cluster yet."""
    lines = _lines_before_the_log(place)
    return any(sign in line for line in lines for sign in STILL_HELD)


def last_lines(text: str) -> tuple[str, ...]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return tuple(lines[-LAST_LINES_MAX:])


def _lines_before_the_log(place: Place) -> tuple[str, ...]:
    lines = last_lines(_tail(place.startup_log))
    return tuple(line for line in lines if not any(word in line for word in HANDED_OVER))


def _newest_log(place: Place) -> tuple[Path, tuple[str, ...]]:
    logs = sorted(place.logs.glob("*.log"), key=lambda path: path.lstat().st_mtime)
    if not logs:
        return place.startup_log, ()
    return logs[-1], last_lines(_tail(logs[-1]))


def _tail(path: Path) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(fd, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES_MAX))
        return file.read().decode(errors="replace")
