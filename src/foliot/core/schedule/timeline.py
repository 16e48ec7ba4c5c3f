"""The instants of a schedule as one ordered line that can be asked, never listed.

Next, previous and count are arithmetic, whatever lies between: a year of seconds costs what an hour
costs. An occurrence that is known not to run (a local time that does not exist, an excluded day)
is *held*: it stays on the line, with its reason, because the ledger accounts for it too.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from foliot.core.cron.clock import CronInstant, count_instants, next_instant, previous_instant
from foliot.core.cron.expression import Cron
from foliot.core.ids import EPOCH, from_microseconds, microseconds
from foliot.core.model import DstGap, DstOverlap, SkipReason
from foliot.core.zones import stretch_at

TICK: Final = timedelta(microseconds=1)
_LATEST: Final = microseconds(datetime.max.replace(tzinfo=UTC))
# Held runs passed over in search of one that fires: over seven years of weekends.
_HELD_RUNS_MAX: Final = 400


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One instant of a job. With a `skip_reason` it is recorded, not run."""

    instant: datetime
    note: str | None = None
    skip_reason: SkipReason | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """`count` instants in a row, the first at `from_` and the last at `to`, that did not run."""

    from_: datetime
    to: datetime
    count: int
    reason: SkipReason


class Timeline(ABC):
    """Occurrences in strictly increasing order."""

    @abstractmethod
    def next(self, after: datetime) -> Occurrence | None:
        """The first one strictly after."""

    @abstractmethod
    def previous(self, before: datetime) -> Occurrence | None:
        """The last one strictly before."""

    @abstractmethod
    def count(self, after: datetime, until: datetime) -> int:
        """How many lie in after < instant <= until, held ones included; none if it is empty."""

    def held(self, after: datetime, until: datetime) -> Iterator[Skip]:
        """All held ones in after < instant <= until, as runs, oldest first."""
        del after, until
        yield from ()

    def after_held(self, held: Occurrence) -> datetime:
        """A moment up to which nothing runs, given that this one does not."""
        return held.instant

    def before_held(self, held: Occurrence) -> datetime:
        """A moment from which on nothing runs until this one, which does not either."""
        return held.instant

    def next_fire(self, after: datetime) -> Occurrence | None:
        """The first one strictly after that runs."""
        for _ in range(_HELD_RUNS_MAX):
            found = self.next(after)
            if found is None or found.skip_reason is None:
                return found
            after = self.after_held(found)
        return None

    def previous_fire(self, before: datetime) -> Occurrence | None:
        """The last one strictly before that runs."""
        for _ in range(_HELD_RUNS_MAX):
            found = self.previous(before)
            if found is None or found.skip_reason is None:
                return found
            before = self.before_held(found)
        return None


@dataclass(frozen=True, slots=True)
class Listed(Timeline):
    """A few occurrences, in order, as they are."""

    occurrences: tuple[Occurrence, ...]

    def next(self, after: datetime) -> Occurrence | None:
        index = bisect_right(self.occurrences, after, key=_instant)
        return self.occurrences[index] if index < len(self.occurrences) else None

    def previous(self, before: datetime) -> Occurrence | None:
        index = bisect_left(self.occurrences, before, key=_instant)
        return self.occurrences[index - 1] if index else None

    def count(self, after: datetime, until: datetime) -> int:
        low = bisect_right(self.occurrences, after, key=_instant)
        return max(0, bisect_right(self.occurrences, until, key=_instant) - low)

    def held(self, after: datetime, until: datetime) -> Iterator[Skip]:
        for one in self.occurrences:
            if one.skip_reason is not None and after < one.instant <= until:
                yield Skip(one.instant, one.instant, 1, one.skip_reason)


def _instant(occurrence: Occurrence) -> datetime:
    return occurrence.instant


@dataclass(frozen=True, slots=True)
class IntervalLine(Timeline):
    """first + k · step for every k from 0 on, in whole microseconds: it never drifts."""

    first: int
    step: int

    def next(self, after: datetime) -> Occurrence | None:
        steps = max(0, (microseconds(after) - self.first) // self.step + 1)
        at = self.first + steps * self.step
        return Occurrence(from_microseconds(at)) if at <= _LATEST else None

    def previous(self, before: datetime) -> Occurrence | None:
        steps = (microseconds(before) - self.first - 1) // self.step
        if steps < 0:
            return None
        return Occurrence(from_microseconds(self.first + steps * self.step))

    def count(self, after: datetime, until: datetime) -> int:
        low = max(-1, (microseconds(after) - self.first) // self.step)
        return max(0, (microseconds(until) - self.first) // self.step - low)


@dataclass(frozen=True, slots=True)
class CronLine(Timeline):
    cron: Cron
    zone: ZoneInfo
    gap: DstGap
    overlap: DstOverlap

    def next(self, after: datetime) -> Occurrence | None:
        found = next_instant(self.cron, self.zone, after, self.gap, self.overlap)
        return self._occurrence(found) if found else None

    def previous(self, before: datetime) -> Occurrence | None:
        found = previous_instant(self.cron, self.zone, before, self.gap, self.overlap)
        return self._occurrence(found) if found else None

    def count(self, after: datetime, until: datetime) -> int:
        return count_instants(self.cron, self.zone, after, until, self.gap, self.overlap)

    def held(self, after: datetime, until: datetime) -> Iterator[Skip]:
        """At most one for each gap, at its end: the ends are looked up, not the instants."""
        if self.gap is not DstGap.SKIP:
            return
        second, last = _seconds(after) + 1, _seconds(until)
        while second <= last:
            stretch = stretch_at(self.zone, second)
            if stretch.start == second and stretch.gap_from < second + stretch.offset:
                at = EPOCH + timedelta(seconds=second)
                found = self.next(at - TICK)
                if found is not None and found.instant == at and found.skip_reason is not None:
                    yield Skip(at, at, 1, found.skip_reason)
            second = stretch.end

    def _occurrence(self, found: CronInstant) -> Occurrence:
        if found.moved_from is None:
            return Occurrence(found.at)
        place = self.zone.key.rpartition("/")[2].replace("_", " ")
        missing = f"{_clock(found.moved_from)} does not exist on {found.moved_from.date()}"
        if found.skipped:
            note = f"{missing} in {place}: skipped"
            return Occurrence(found.at, note, SkipReason.DST_GAP)
        note = f"{missing} in {place}: moved to {_clock(found.at.astimezone(self.zone))}"
        return Occurrence(found.at, note)


def _seconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(seconds=1)


def _clock(at: datetime) -> str:
    return at.strftime("%H:%M:%S" if at.second else "%H:%M")


@dataclass(frozen=True, slots=True)
class Bounded(Timeline):
    """The part of a line in after < instant < end."""

    line: Timeline
    after: datetime
    end: datetime | None = None

    def next(self, after: datetime) -> Occurrence | None:
        return self._before_end(self.line.next(max(after, self.after)))

    def previous(self, before: datetime) -> Occurrence | None:
        return self._after_start(self.line.previous(self._upper(before)))

    def next_fire(self, after: datetime) -> Occurrence | None:
        return self._before_end(self.line.next_fire(max(after, self.after)))

    def previous_fire(self, before: datetime) -> Occurrence | None:
        return self._after_start(self.line.previous_fire(self._upper(before)))

    def count(self, after: datetime, until: datetime) -> int:
        return self.line.count(*self._span(after, until))

    def held(self, after: datetime, until: datetime) -> Iterator[Skip]:
        return self.line.held(*self._span(after, until))

    def _span(self, after: datetime, until: datetime) -> tuple[datetime, datetime]:
        high = until if self.end is None else min(until, self.end - TICK)
        return max(after, self.after), high

    def _upper(self, before: datetime) -> datetime:
        return before if self.end is None else min(before, self.end)

    def _before_end(self, found: Occurrence | None) -> Occurrence | None:
        late = found is not None and self.end is not None and found.instant >= self.end
        return None if late else found

    def _after_start(self, found: Occurrence | None) -> Occurrence | None:
        return None if found is None or found.instant <= self.after else found


@dataclass(frozen=True, slots=True)
class Moved(Timeline):
    """A line with a note that says why it is here and not there, shifted by a fixed time."""

    line: Timeline
    note: str
    by: timedelta = timedelta()

    def next(self, after: datetime) -> Occurrence | None:
        return self._moved(self.line.next(after - self.by))

    def previous(self, before: datetime) -> Occurrence | None:
        return self._moved(self.line.previous(before - self.by))

    def count(self, after: datetime, until: datetime) -> int:
        return self.line.count(after - self.by, until - self.by)

    def held(self, after: datetime, until: datetime) -> Iterator[Skip]:
        for run in self.line.held(after - self.by, until - self.by):
            yield replace(run, from_=run.from_ + self.by, to=run.to + self.by)

    def _moved(self, found: Occurrence | None) -> Occurrence | None:
        if found is None:
            return None
        note = self.note if found.note is None else f"{self.note}; {found.note}"
        return replace(found, instant=found.instant + self.by, note=note)
