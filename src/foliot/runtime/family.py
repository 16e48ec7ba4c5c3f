"""What ties a process to the one that started it, where the system offers it (Linux).

A process can ask to be killed when its parent dies, and to become the parent of descendants whose
own parent has died, so that none gets away by forking twice.
"""

import ctypes
import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
# Of all that are killed at once: a process with much memory takes a while to give it back.
DEATH_SECONDS_MAX: Final = 1.0
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


def renounce_new_rights() -> None:
    """Whatever this process runs gains no rights by that: who may end it now may end it then."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def hide_from_own_user() -> None:
    """Other processes of the same user can no longer read the memory and the environment of this
    one; root still can, and no core is dumped."""
    _prctl(_PR_SET_DUMPABLE, 0)


def children() -> frozenset[int]:
    """The children of this process that have a number, ended ones among them. The system counts
    them by the thread that started them."""
    found: set[int] = set()
    with suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # a thread that has just ended
                found.update(map(int, (thread / "children").read_text(encoding="ascii").split()))
    return frozenset(found)


def end_group(leader: int) -> None:
    """SIGKILL to the process group; one that is gone is gone."""
    # macOS says "not permitted" of a group that is only waiting to be buried.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


class Strays:
    """Children of this process that nobody here has asked for."""

    def __init__(self) -> None:
        self._undying: set[int] = set()

    def end(self, kept: frozenset[int] = frozenset()) -> None:
        """All but `kept` are killed and buried, and those that come to this process by that, until
        there are none. One that cannot be killed (it has gained other rights, as by sudo) or does
        not die of it (it hangs in the kernel) is left for the next time: nobody waits for it."""
        self._undying = {pid for pid in self._undying if not _end(pid, 0)}
        until = time.monotonic() + DEATH_SECONDS_MAX
        while strays := children() - kept - self._undying:
            for pid in strays:
                if not _end(pid, max(0.0, until - time.monotonic())):
                    self._undying.add(pid)


def end_strays() -> None:
    """All children of this process, once."""
    Strays().end()


def let_pass(number: signal.Signals) -> None:
    """It has no effect on this process, and its usual one on what this process starts: a signal
    that is ignored would be ignored there too. None gets lost between the two."""
    held: dict[int, set[int | signal.Signals]] = {}  # by thread

    def ignore(*_: object) -> None: ...

    def hold() -> None:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        held[threading.get_ident()] = mask

    def let_go() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, held.pop(threading.get_ident()))

    def heed() -> None:
        if signal.getsignal(number) is ignore:
            signal.signal(number, signal.SIG_DFL)
        let_go()

    signal.signal(number, ignore)
    os.register_at_fork(before=hold, after_in_parent=let_go, after_in_child=heed)


def _end(pid: int, seconds: float) -> bool:
    """Whether this child was killed and buried within so many seconds."""
    try:
        os.kill(pid, signal.SIGKILL)
    except PermissionError:
        seconds = 0.0
    except ProcessLookupError:
        return True
    try:
        buried, _ = os.waitpid(pid, os.WNOHANG)
        if not buried and seconds > 0 and _has_died(pid, seconds):
            buried, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return buried == pid


def _has_died(pid: int, seconds: float) -> bool:
    """Waits for that, and no longer where the system can tell."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:  # an old kernel, or no descriptor is left
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT) is not None
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(fd)


def _prctl(option: int, value: int) -> None:
    if _LIBC is not None and _LIBC.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
