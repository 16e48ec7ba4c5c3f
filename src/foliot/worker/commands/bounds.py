"""What a program is tied by from before its first instruction.

It dies with its host and gains no rights, so that whoever started it can also end it. There is no
limit on processor time, which the attempt's timeout bounds, nor on memory, which is for the service
manager: where there is none left, the program goes before the worker does.
"""

import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from foliot.runtime.family import die_with_parent, renounce_new_rights

FILE_BYTES_MAX: Final = 10 * 1024**3
OPEN_FILES: Final = (1024, 65_536)
# Counted by the system over all that its user runs, root excepted.
PROCESSES_MAX: Final = 8192
_OOM_SCORE: Final = "500"
_NOT_OURS: Final = frozenset({signal.SIGKILL, signal.SIGSTOP})


def bound_to(parent: int) -> Callable[[], None]:
    """To be called between fork and exec."""

    def bind() -> None:
        die_with_parent(parent)
        renounce_new_rights()
        _limit(resource.RLIMIT_CORE, 0, 0)
        _limit(resource.RLIMIT_FSIZE, FILE_BYTES_MAX, FILE_BYTES_MAX)
        _limit(resource.RLIMIT_NPROC, PROCESSES_MAX, PROCESSES_MAX)
        _limit(resource.RLIMIT_NOFILE, *OPEN_FILES)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE, encoding="ascii")
        for number in signal.valid_signals() - _NOT_OURS:
            with suppress(OSError):  # some are the C library's own
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    return bind


def _limit(which: int, soft: int, hard: int) -> None:
    """Lowered, never raised."""
    known_soft, known_hard = resource.getrlimit(which)
    hard = _lower(hard, known_hard)
    resource.setrlimit(which, (_lower(_lower(soft, known_soft), hard), hard))


def _lower(one: int, other: int) -> int:
    if other == resource.RLIM_INFINITY:
        return one
    return min(one, other)
