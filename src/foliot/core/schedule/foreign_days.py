"""What moves to a business day when the calendar counts its days in another zone than the job.

Such a day holds the end of one of the job's days and the beginning of the next, and either may have
instants without the other. So each day is cut where the job's day changes and wherever one of the
clocks does. Each piece is moved as a whole: every instant in it by the same time. Pieces that show
the same times of day on both clocks hold the same instants or none, so the one that is nearest to
the business day stands for all: the cost does not grow with the number of instants.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from foliot.core.ids import EPOCH
from foliot.core.model import DstGap, DstOverlap, SkipReason
from foliot.core.schedule.calendar import DAY, at_wall_time, day_start
from foliot.core.schedule.timeline import TICK, Bounded, CronLine, Listed, Moved, Occurrence
from foliot.core.schedule.union import Span, Union
from foliot.core.zones import stretch_at

SECOND: Final = timedelta(seconds=1)
_DAY_SECONDS: Final = 86_400
_MIDNIGHT: Final = frozenset({0})


@dataclass(frozen=True, slots=True)
class ForeignMove:
    """From days of `zone`, the calendar's, to the business day `to`."""

    line: CronLine
    zone: ZoneInfo
    gap: DstGap
    overlap: DstOverlap
    to: date

    def union(self, notes: Sequence[tuple[date, str]]) -> Union:
        """The business day with what comes from these days, the nearest first, each with its note.

        The business day's own instants need no reason and stand before all others.
        """
        cuts = _clock_times_of_changes(self.zone, self.to)
        spans: dict[object, Span] = {}
        for day, note in ((self.to, ""), *notes):
            for low, high in self._pieces(day, cuts):
                key = self._times_of_day(low, high)
                part = Bounded(self.line, _at(low) - TICK, _at(high))
                if key not in spans and part.next(part.after) is not None:
                    own = day == self.to
                    spans[key] = Span(_at(low), _at(high), part) if own else self._move(part, note)
        return Union(tuple(spans.values()))

    def _pieces(self, day: date, cuts: frozenset[int]) -> Iterator[tuple[int, int]]:
        """The day, cut so that in each piece both clocks run on and the job's day is one."""
        low, high = (_seconds(day_start(self.zone, each)) for each in (day, day + DAY))
        points = {
            low,
            high,
            *_changes_and_times(self.zone, low, high, cuts | _MIDNIGHT),
            *_changes_and_times(self.line.zone, low, high, _MIDNIGHT),
        }
        return pairwise(sorted(points))

    def _times_of_day(self, low: int, high: int) -> object:
        """What decides which instants a piece has if its day has any.

        Near a change of the job's clocks a day may have fewer or more: there no other stands for
        it. Two days on each side hold every instant that a change can move.
        """
        job, margin = self.line.zone, 2 * _DAY_SECONDS
        if stretch_at(job, low - margin).offset != stretch_at(job, low + margin).offset:
            return low
        return _clock_time(self.zone, low), _clock_time(job, low), high - low

    def _move(self, part: Bounded, note: str) -> Span:
        low, high = part.after + TICK, part.end or part.after
        wall_time = datetime.combine(self.to, low.astimezone(self.zone).time())
        at, in_gap = at_wall_time(self.zone, wall_time, self.overlap)
        end = day_start(self.zone, self.to + DAY)
        if not in_gap and at < end:
            by = at - low
            return Span(at, high + by, Moved(part, note, by))
        # All of it meets at the end of the gap, or in the last second if that leads out of the day.
        at = min(at, end - SECOND)
        held = in_gap and self.gap is DstGap.SKIP
        found = Occurrence(at, note, SkipReason.DST_GAP if held else None)
        return Span(at, at + TICK, Listed((found,)))


def _clock_times_of_changes(zone: ZoneInfo, day: date) -> frozenset[int]:
    """The times of day between which a local time of the day may be missing or come twice."""
    second = _seconds(day_start(zone, day)) - _DAY_SECONDS
    end = _seconds(day_start(zone, day + DAY)) + _DAY_SECONDS
    times: set[int] = set()
    while (stretch := stretch_at(zone, second)).end < end:
        second = stretch.end
        after = stretch_at(zone, second).offset
        if after != stretch.offset:
            times |= {(second + offset) % _DAY_SECONDS for offset in (stretch.offset, after)}
    return frozenset(times)


def _changes_and_times(zone: ZoneInfo, low: int, high: int, times: frozenset[int]) -> Iterator[int]:
    """Every moment from low to high at which the zone's offset changes or its clock shows one."""
    while low < high:
        stretch = stretch_at(zone, low)
        end = min(stretch.end, high)
        yield end
        for time in times:
            yield from range(low + (time - stretch.offset - low) % _DAY_SECONDS, end, _DAY_SECONDS)
        low = end


def _clock_time(zone: ZoneInfo, second: int) -> int:
    return (second + stretch_at(zone, second).offset) % _DAY_SECONDS


def _seconds(at: datetime) -> int:
    return (at - EPOCH) // SECOND


def _at(second: int) -> datetime:
    return EPOCH + timedelta(seconds=second)
