"""Processes that are slow to die, for tests: as one is that has much memory or hangs in the kernel.

Whoever traces a process hears of its end first, and until then its parent cannot bury it.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_PTRACE_SEIZE: Final = 0x4206
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


@contextmanager
def slow_to_die(pid: int) -> Iterator[None]:
    """However it is killed, to its parent it lives on until the end of this. It must have been
    killed by then."""
    if _LIBC.ptrace(_PTRACE_SEIZE, pid, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"process {pid} cannot be traced")
    try:
        yield
    finally:
        os.waitpid(pid, 0)
