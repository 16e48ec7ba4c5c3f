"""Processes whose wall clock is wrong: libfaketime (Debian's package `faketime`)."""

from pathlib import Path
from typing import Final

LIBRARY: Final = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


def clock_off_by(seconds: int) -> dict[str, str]:
    """The environment of a process whose wall clock is wrong. What it measures time by is right."""
    return {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME": f"{seconds:+}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def remove_shared_memory(pid: int) -> None:
    """What the library made under the process's number and would have removed at its end, had it
    not been killed."""
    for name in (f"sem.faketime_sem_{pid}", f"faketime_shm_{pid}"):
        (Path("/dev/shm") / name).unlink(missing_ok=True)  # noqa: S108 - where the library puts it
