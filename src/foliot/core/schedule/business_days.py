"""A schedule's instants as an exclusion calendar lets them stand.

SKIP holds the instants of an excluded day. The moving rules take them to the next or previous
business day at the same local time, where those that coincide become one. An interval shorter than
a day has its turn on each business day anyway: there the moving rules hold like SKIP. The result
depends on schedule and calendar alone, never on who asks when.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from heapq import merge
from typing import Final
from zoneinfo import ZoneInfo

from foliot.core.cron.expression import parse
from foliot.core.model import CalendarRule, DstGap, DstOverlap, SkipReason
from foliot.core.schedule.calendar import DAY, Calendar, at_wall_time, day_of, day_start
from foliot.core.schedule.foreign_days import SECOND, ForeignMove
from foliot.core.schedule.timeline import (
    TICK,
    Bounded,
    CronLine,
    IntervalLine,
    Listed,
    Moved,
    Occurrence,
    Skip,
    Timeline,
)

_DAY_MICROSECONDS: Final = DAY // TICK
_ANY_DAY: Final = parse("* * * * *")


def on_business_days(
    line: Timeline, calendar: Calendar, zone: ZoneInfo, gap: DstGap, overlap: DstOverlap
) -> Timeline:
    """The line under the calendar, whose days are those of `zone`."""
    short = isinstance(line, IntervalLine) and line.step < _DAY_MICROSECONDS
    if calendar.rule is CalendarRule.SKIP or short:
        return HeldDays(line, calendar, zone)
    return MovedDays(line, calendar, zone, gap, overlap)


@dataclass(frozen=True, slots=True)
class HeldDays(Timeline):
    """Every instant stays; those on excluded days are held."""

    line: Timeline
    calendar: Calendar
    zone: ZoneInfo

    def next(self, after: datetime) -> Occurrence | None:
        return self._judged(self.line.next(after))

    def previous(self, before: datetime) -> Occurrence | None:
        return self._judged(self.line.previous(before))

    def count(self, after: datetime, until: datetime) -> int:
        return self.line.count(after, until)

    def held(self, after: datetime, until: datetime) -> Iterator[Skip]:
        inner = (
            skip
            for skip in self.line.held(after, until)
            if not self.calendar.excludes(day_of(self.zone, skip.from_))
        )
        return merge(self._excluded(after, until), inner, key=_beginning)

    def after_held(self, held: Occurrence) -> datetime:
        if held.skip_reason is not SkipReason.CALENDAR:
            return held.instant
        _, last = self.calendar.run_around(day_of(self.zone, held.instant))
        return day_start(self.zone, last + DAY) - TICK

    def before_held(self, held: Occurrence) -> datetime:
        if held.skip_reason is not SkipReason.CALENDAR:
            return held.instant
        first, _ = self.calendar.run_around(day_of(self.zone, held.instant))
        return day_start(self.zone, first)

    def _judged(self, found: Occurrence | None) -> Occurrence | None:
        if found is None:
            return None
        day = day_of(self.zone, found.instant)
        if not self.calendar.excludes(day):
            return found
        note = f"{day} is excluded by calendar {self.calendar.name}"
        return replace(found, note=note, skip_reason=SkipReason.CALENDAR)

    def _excluded(self, after: datetime, until: datetime) -> Iterator[Skip]:
        for first, last in self.calendar.runs(day_of(self.zone, after), day_of(self.zone, until)):
            low = max(after, day_start(self.zone, first) - TICK)
            high = min(until, day_start(self.zone, last + DAY) - TICK)
            count = self.line.count(low, high) if low < high else 0
            begin, end = self.line.next(low), self.line.previous(high + TICK)
            if count and begin and end:
                yield Skip(begin.instant, end.instant, count, SkipReason.CALENDAR)


def _beginning(skip: Skip) -> datetime:
    return skip.from_


@dataclass(frozen=True, slots=True)
class Group:
    """A business day and the excluded days that move to it: first..last holds them all."""

    day: date
    first: date
    last: date

    @property
    def has_excluded_days(self) -> bool:
        return self.first < self.last


def _days(line: Timeline, zone: ZoneInfo, first: date, last: date) -> Bounded:
    """The part of the line on these days."""
    return Bounded(line, day_start(zone, first) - TICK, day_start(zone, last + DAY))


@dataclass(frozen=True, slots=True)
class MovedDays(Timeline):
    """Every instant of an excluded day is on its business day.

    The days of a cron schedule have the same local times, so what arrives on a business day with
    instants of its own coincides with those, and of several excluded days that move to one business
    day the nearest stands for all. Under a calendar of another zone that holds for parts of days
    (`foreign_days`). The instants of an interval are moved one by one.

    Groups follow each other without a hole, and so do their business days: the first instant after
    a moment is in the moment's own group or in the next one that has any.
    """

    line: Timeline
    calendar: Calendar
    zone: ZoneInfo
    gap: DstGap
    overlap: DstOverlap

    def next(self, after: datetime) -> Occurrence | None:
        group = self._group(day_of(self.zone, after))
        while (found := self._instants(group).next(after)) is None:
            later = self.line.next(day_start(self.zone, group.last + DAY) - TICK)
            if later is None:
                return None
            group = self._group(day_of(self.zone, later.instant))
        return found

    def previous(self, before: datetime) -> Occurrence | None:
        group = self._group(day_of(self.zone, before))
        while (found := self._instants(group).previous(before)) is None:
            earlier = self.line.previous(day_start(self.zone, group.first))
            if earlier is None:
                return None
            group = self._group(day_of(self.zone, earlier.instant))
        return found

    def count(self, after: datetime, until: datetime) -> int:
        count = self.line.count(after, until)
        for group in self._moving_groups(after, until):
            plain = self._part(group.first, group.last).count(after, until)
            count += self._instants(group).count(after, until) - plain
        return count

    def held(self, after: datetime, until: datetime) -> Iterator[Skip]:
        if self.gap is not DstGap.SKIP:
            return iter(())
        plain = (
            skip
            for skip in self.line.held(after, until)
            if not self._group(day_of(self.zone, skip.from_)).has_excluded_days
        )
        moved = (
            skip
            for group in self._moving_groups(after, until)
            for skip in self._instants(group).held(after, until)
        )
        return merge(plain, moved, key=_beginning)

    def _moving_groups(self, after: datetime, until: datetime) -> Iterator[Group]:
        """The groups with excluded days that touch the time from `after` to `until`."""
        day, end = day_of(self.zone, after), day_of(self.zone, until)
        while day <= end:
            group = self._group(day)
            if group.has_excluded_days:
                yield group
            day = group.last + DAY

    def _group(self, day: date) -> Group:
        forward = self.calendar.rule is CalendarRule.NEXT_BUSINESS_DAY
        neighbour = day - DAY if forward else day + DAY
        inside = day if self.calendar.excludes(day) else neighbour
        if not self.calendar.excludes(inside):
            return Group(day, day, day)
        first, last = self.calendar.run_around(inside)
        if forward:
            return Group(last + DAY, first, last + DAY)
        return Group(first - DAY, first - DAY, last)

    def _part(self, first: date, last: date) -> Bounded:
        return _days(self.line, self.zone, first, last)

    def _instants(self, group: Group) -> Timeline:
        """What the business day of the group has in the end."""
        if isinstance(self.line, IntervalLine):
            return self._moved_one_by_one(group, self._part(group.first, group.last))
        if isinstance(self.line, CronLine) and self.line.zone is not self.zone:
            return self._moved_between_zones(group, self.line)
        own = self._part(group.day, group.day)
        if not group.has_excluded_days or own.next(own.after) is not None:
            return own
        source = self._nearest_day(group)
        if source is None:
            return Listed(())
        return self._moved_day(group, source)

    def _moved_between_zones(self, group: Group, line: CronLine) -> Timeline:
        if not group.has_excluded_days:
            return self._part(group.day, group.day)
        days = (group.first + n * DAY for n in range((group.last - group.first).days + 1))
        nearest = sorted((day for day in days if day != group.day), reverse=group.day == group.last)
        move = ForeignMove(line, self.zone, self.gap, self.overlap, group.day)
        return move.union([(day, self._note(day)) for day in nearest])

    def _nearest_day(self, group: Group) -> date | None:
        """The excluded day of the group, closest to its business day, that has instants."""
        if group.day == group.last:
            found = self.line.previous(day_start(self.zone, group.day))
        else:
            found = self.line.next(day_start(self.zone, group.day + DAY) - TICK)
        source = found and day_of(self.zone, found.instant)
        return source if source and group.first <= source <= group.last else None

    def _moved_day(self, group: Group, source: date) -> Timeline:
        note = self._note(source)
        if isinstance(self.line, CronLine):
            # The same times on another day are what the fields say without those for days.
            cron = replace(self.line.cron, months=_ANY_DAY.months, days=_ANY_DAY.days)
            there = _days(replace(self.line, cron=cron), self.zone, group.day, group.day)
            if there.next(there.after) is not None:
                return Moved(there, note)
        part = self._part(source, source)
        if all(self._has_24_hours(day) for day in (source, group.day)):
            by = day_start(self.zone, group.day) - day_start(self.zone, source)
            return Moved(part, note, by)
        return self._moved_one_by_one(group, part)

    def _has_24_hours(self, day: date) -> bool:
        return day_start(self.zone, day + DAY) - day_start(self.zone, day) == DAY

    def _moved_one_by_one(self, group: Group, part: Bounded) -> Listed:
        arrived: dict[datetime, Occurrence] = {}
        found = part.next(part.after)
        while found is not None:
            moved = self._moved(found, group.day)
            # Of two that coincide the one that runs stands.
            if moved.skip_reason is None or moved.instant not in arrived:
                arrived[moved.instant] = moved
            found = part.next(found.instant)
        return Listed(tuple(arrived[instant] for instant in sorted(arrived)))

    def _moved(self, found: Occurrence, day: date) -> Occurrence:
        source = day_of(self.zone, found.instant)
        if source == day:
            return found
        wall_time = datetime.combine(day, found.instant.astimezone(self.zone).time())
        instant, in_gap = at_wall_time(self.zone, wall_time, self.overlap)
        # A gap that ends the day would lead out of it: then its last second.
        instant = min(instant, day_start(self.zone, day + DAY) - SECOND)
        held = SkipReason.DST_GAP if in_gap and self.gap is DstGap.SKIP else None
        return Occurrence(instant, self._note(source), held)

    def _note(self, source: date) -> str:
        which = "next" if self.calendar.rule is CalendarRule.NEXT_BUSINESS_DAY else "previous"
        return f"moved from {source} to the {which} business day by calendar {self.calendar.name}"
