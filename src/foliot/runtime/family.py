"""What ties a process to the one that started it, where the system offers it (Linux).

A process can ask to be killed when its parent dies, and to become the parent of descendants whose
own parent has died, so that none gets away by forking twice.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_IS_LINUX: Final = sys.platform == "linux"
_LIBC: Final = ctypes.CDLL(None, use_errno=True) if _IS_LINUX else None


def die_with_parent(parent_pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """`number` reaches this process when its parent ends; it ends now if that has happened."""
    _prctl(_PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent_pid:
        os._exit(0)


def adopt_orphans() -> None:
    """Descendants whose parent has ended become children of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> frozenset[int]:
    """The children of this process that have a number, ended ones among them."""
    with suppress(OSError):
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
        return frozenset(map(int, listed.split()))
    return frozenset()


def end_group(leader: int) -> None:
    """SIGKILL to the process group; one that is gone is gone."""
    # macOS says "not permitted" of a group that is only waiting to be buried.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if _LIBC is not None and _LIBC.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
