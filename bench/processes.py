"""What processes take: memory and time of processors, of one and of all that it has started.

A page that several share counts for each by its part (PSS), so that the sum over processes is what
the machine really gives.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


def family_mb(pid: int) -> float:
    return sum(_pss_bytes(member) for member in family(pid)) / 1e6


def family_cpu_seconds(pid: int) -> float:
    """Of those that live."""
    return sum(_cpu_seconds(member) for member in family(pid))


def family(pid: int) -> list[int]:
    """The process and its descendants."""
    found, queue = list[int](), [pid]
    while queue:
        member = queue.pop()
        found.append(member)
        with suppress(OSError):  # one that has just ended
            for thread in (PROC / str(member) / "task").iterdir():
                queue += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found


def _pss_bytes(pid: int) -> int:
    with suppress(OSError):
        for line in (PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _cpu_seconds(pid: int) -> float:
    with suppress(OSError):
        after_name = (PROC / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2]
        return sum(map(int, after_name.split()[11:13])) / TICKS_PER_SECOND
    return 0.0
