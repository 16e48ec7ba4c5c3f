"""How much a worker takes ahead of what it runs: enough to be never idle, never more than it can
begin soon.

What is claimed is nobody else's, so it must begin within a second or go back to the queue. A bite
is the free slots and a tenth of a second of the throughput of the last second: quick attempts are
fetched by the thousand, slow ones one slot at a time.
"""

from collections import deque
from dataclasses import dataclass
from math import floor
from typing import Final

# Whoever comes now stands behind what is here, however small his share of the queue: with half a
# second ahead small tenants waited 560 ms beside a flood (p99), with a tenth 130 ms.
AHEAD_SECONDS: Final = 0.1
BEGIN_WITHIN_SECONDS: Final = 1.0
BITE_MAX: Final = 2000
# Ends that the database has not taken yet, because it is away or slow: beyond this many nothing new
# is begun, and memory stays bounded.
UNWRITTEN_MAX: Final = 4000
WINDOW_SECONDS: Final = 1.0
_SLICES_A_SECOND: Final = 20


@dataclass(frozen=True, slots=True)
class Load:
    """What a worker has on its hands."""

    capacity: int
    running: int
    waiting: int  # claimed and not begun
    unwritten: int  # ended, and not written down
    per_second: float


def bite(load: Load) -> int:
    """How many to claim now: 0 while at least half of what is wanted is here already."""
    if load.unwritten >= UNWRITTEN_MAX:
        return 0
    wanted = _wanted(load)
    if load.waiting * 2 > wanted:
        return 0
    return min(wanted - load.waiting, BITE_MAX, UNWRITTEN_MAX - load.unwritten)


def room_at(load: Load) -> int:
    """How many may wait at the most for there to be room: as long as more do, nobody need ask."""
    if load.waiting * 2 <= _wanted(load):
        return load.waiting  # it is not they who fill it
    return _wanted(load) // 2


def _wanted(load: Load) -> int:
    return max(0, load.capacity - load.running) + int(load.per_second * AHEAD_SECONDS)


class Throughput:
    """Attempts that ended within the last second."""

    def __init__(self) -> None:
        self._slices: deque[tuple[int, int]] = deque()  # number of the slice, how many ended in it
        self._total = 0

    def count(self, now: float) -> None:
        """One more ended at `now` of the monotonic clock."""
        number = _slice(now)
        if self._slices and self._slices[-1][0] == number:
            self._slices[-1] = (number, self._slices[-1][1] + 1)
        else:
            self._slices.append((number, 1))
        self._total += 1

    def per_second(self, now: float) -> float:
        oldest = _slice(now - WINDOW_SECONDS)
        while self._slices and self._slices[0][0] <= oldest:
            self._total -= self._slices.popleft()[1]
        return self._total / WINDOW_SECONDS


def _slice(at: float) -> int:
    return floor(at * _SLICES_A_SECOND)
