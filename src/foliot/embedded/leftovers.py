"""What an earlier owner that died without a word left running, found and ended.

A process number in a file proves nothing: numbers are used again. A process counts as ours only
if it is a postgres of this very cluster.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from foliot.embedded.child import SHUTDOWN_STEPS
from foliot.runtime.clock import Clock

POLL_SECONDS: Final = 0.02


async def end_leftovers(cluster: Path, clock: Clock) -> None:
    """Afterwards no server runs on the cluster, and no pid file keeps a new one from starting."""
    pid_file = cluster / "postmaster.pid"
    try:
        first_line = pid_file.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    except FileNotFoundError:
        return
    pid = int(first_line) if first_line.strip().isdecimal() else None
    if pid is not None:
        await _end_postmaster(pid, cluster, clock)
    for backend in _orphaned_backends(cluster):
        _send(backend, signal.SIGQUIT)
    # postgres clears the file of a dead process itself, but not one that is damaged, nor one
    # whose number now belongs to another program of the same user.
    if pid is None or _is_alive(pid):
        pid_file.unlink(missing_ok=True)


async def _end_postmaster(pid: int, cluster: Path, clock: Clock) -> None:
    for number, patience_seconds in SHUTDOWN_STEPS:
        if not _is_postmaster(pid, cluster):
            return
        _send(pid, number)
        deadline = clock.monotonic() + patience_seconds
        while clock.monotonic() < deadline and _is_postmaster(pid, cluster):
            await clock.sleep(POLL_SECONDS)


def _is_postmaster(pid: int, cluster: Path) -> bool:
    return _arguments(pid).endswith(f"/postgres -D {cluster}")


def _arguments(pid: int) -> str:
    """The command line of a process; empty if there is none, or only its remains."""
    if sys.platform == "linux":
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            return ""
    else:
        listing = ["/bin/ps", "-ww", "-o", "args=", "-p", str(pid)]
        line = subprocess.run(listing, capture_output=True, check=False).stdout  # noqa: S603
    return os.fsdecode(line.strip())


def _orphaned_backends(cluster: Path) -> Iterator[int]:
    """Backends whose postmaster was killed. They leave by themselves unless busy, hence this.

    Every one of them has the cluster as its working directory. Only Linux lets us look.
    """
    if sys.platform != "linux":
        return
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdecimal() and (process / "cwd").readlink() == cluster:
                name = (process / "comm").read_text(encoding="utf-8").strip()
                if name.startswith("postgres"):
                    yield int(process.name)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
