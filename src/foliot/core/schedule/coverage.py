"""Which instants of a line have an outcome, in whatever order the outcomes come.

Instants that follow each other are one run, so what is kept grows with the number of holes and not
with the number of outcomes: a year without a hole is one run.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import datetime

from foliot.core.schedule.timeline import TICK, Occurrence, Timeline

Span = tuple[datetime, datetime]


class Coverage:
    """Of the instants of `line` in after < instant <= until."""

    def __init__(self, line: Timeline, after: datetime, until: datetime) -> None:
        self._line = line
        self._after = after
        self._until = until
        self._starts: list[datetime] = []
        self._ends: list[datetime] = []
        self._asked: datetime | None = None
        self._answer: Occurrence | None = None

    def __len__(self) -> int:
        """How many runs are kept."""
        return len(self._starts)

    def find(self, instant: datetime) -> Occurrence | None:
        """What the line has at this very moment."""
        place = bisect_left(self._ends, instant)
        # Outcomes mostly come in order: what follows the run before is what is asked for.
        if place:
            found = self._next(self._ends[place - 1])
            if found is not None and found.instant == instant:
                return found
        found = self._line.next(instant - TICK)
        return found if found is not None and found.instant == instant else None

    def add(self, first: datetime, last: datetime) -> list[Span]:
        """All instants from `first` to `last`, both on the line, have an outcome; the parts that
        had one before."""
        low, high = bisect_left(self._ends, first), bisect_right(self._starts, last)
        met = [
            (max(first, self._starts[place]), min(last, self._ends[place]))
            for place in range(low, high)
        ]
        if met:
            first, last = min(first, self._starts[low]), max(last, self._ends[high - 1])
        if low and self._is_next(self._ends[low - 1], first):
            low -= 1
            first = self._starts[low]
        if high < len(self._starts) and self._is_next(last, self._starts[high]):
            last = self._ends[high]
            high += 1
        self._starts[low:high] = [first]
        self._ends[low:high] = [last]
        return met

    def holes(self) -> Iterator[tuple[datetime, datetime, int]]:
        """The first and the last of each run of instants without an outcome, and how many."""
        position = self._after
        for start, end in zip(self._starts, self._ends, strict=True):
            yield from self._hole(position, start - TICK)
            position = end
        yield from self._hole(position, self._until)

    def _hole(self, after: datetime, until: datetime) -> Iterator[tuple[datetime, datetime, int]]:
        count = self._line.count(after, until)
        first, last = self._line.next(after), self._line.previous(until + TICK)
        if count and first and last:
            yield first.instant, last.instant, count

    def _is_next(self, instant: datetime, other: datetime) -> bool:
        found = self._next(instant)
        return found is not None and found.instant == other

    def _next(self, instant: datetime) -> Occurrence | None:
        if instant != self._asked:
            self._asked, self._answer = instant, self._line.next(instant)
        return self._answer
