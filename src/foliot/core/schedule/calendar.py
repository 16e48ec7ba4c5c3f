"""Exclusion calendars: days on which jobs do not run, named and shared by many jobs.

A day is excluded by date, by weekday or by a date that comes every year. The calendar's days are
those of its own zone, or of each job's zone if it has none. Days are counted from the first instant
at which the clock shows midnight or later, so that every instant belongs to exactly one day, also
where clocks are changed at midnight.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from foliot.core.errors import InvalidInput
from foliot.core.ids import EPOCH
from foliot.core.model import CalendarRule, DstOverlap
from foliot.core.zones import stretch_at, zone

DAY: Final = timedelta(days=1)
EXCLUDED_DATES_MAX: Final = 5_000
# A move looks for a business day; further than a year it would not be the same job any more.
EXCLUDED_DAYS_IN_A_ROW_MAX: Final = 366
_FIRST_YEAR, _LAST_YEAR = 1970, 2199
_NAME_LENGTH_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Calendar:
    """Weekdays are those of ISO 8601: 1 is Monday, 7 is Sunday. Yearly dates are (month, day)."""

    name: str
    rule: CalendarRule = CalendarRule.SKIP
    timezone: str | None = None
    excluded_dates: frozenset[date] = frozenset()
    excluded_weekdays: frozenset[int] = frozenset()
    excluded_yearly: frozenset[tuple[int, int]] = frozenset()

    def excludes(self, day: date) -> bool:
        return (
            day.isoweekday() in self.excluded_weekdays
            or (day.month, day.day) in self.excluded_yearly
            or day in self.excluded_dates
        )

    def run_around(self, day: date) -> tuple[date, date]:
        """The first and last day of the excluded days in a row that hold this excluded one."""
        first = last = day
        while self.excludes(first - DAY):
            first -= DAY
        while self.excludes(last + DAY):
            last += DAY
        return first, last

    def runs(self, first: date, last: date) -> Iterator[tuple[date, date]]:
        """The runs of excluded days that touch first..last, in order and whole."""
        day = first
        while day <= last:
            if self.excludes(day):
                run = self.run_around(day)
                yield run
                day = run[1]
            day += DAY


def validate(calendar: Calendar) -> None:
    """InvalidInput names the field and the fix; InvalidTimezone the zone."""
    if not calendar.name.strip() or len(calendar.name) > _NAME_LENGTH_MAX:
        raise InvalidInput(
            "a calendar needs a name", field="name", hint=f"1 to {_NAME_LENGTH_MAX} characters"
        )
    if calendar.timezone is not None:
        zone(calendar.timezone)
    if wrong := sorted(calendar.excluded_weekdays - set(range(1, 8))):
        raise InvalidInput(
            f"{wrong[0]} is not a weekday",
            field="excluded_weekdays",
            hint="1 is Monday, 7 is Sunday",
        )
    if len(calendar.excluded_weekdays) == 7:
        raise InvalidInput(
            "every day of the week is excluded",
            field="excluded_weekdays",
            hint="leave at least one; to stop a job, pause it",
        )
    for month, day in sorted(calendar.excluded_yearly):
        _check_yearly(month, day)
    _check_dates(calendar.excluded_dates)
    _check_days_in_a_row(calendar)


def _check_yearly(month: int, day: int) -> None:
    try:
        date(2000, month, day)  # a leap year: 29 February is a date
    except ValueError:
        raise InvalidInput(
            f"there is no day {day} in month {month}",
            field="excluded_yearly",
            hint="give (month, day), such as (12, 25)",
        ) from None


def _check_dates(dates: frozenset[date]) -> None:
    if len(dates) > EXCLUDED_DATES_MAX:
        raise InvalidInput(
            f"{len(dates)} dates are too many",
            field="excluded_dates",
            hint=f"at most {EXCLUDED_DATES_MAX}; what comes every year goes into excluded_yearly",
        )
    for day in dates:
        if isinstance(day, datetime) or not _FIRST_YEAR <= day.year <= _LAST_YEAR:
            raise InvalidInput(
                f"{day} cannot be excluded",
                field="excluded_dates",
                hint=f"give days without a time, from {_FIRST_YEAR} to {_LAST_YEAR}",
            )


def _check_days_in_a_row(calendar: Calendar) -> None:
    """Weekdays and yearly dates repeat within these years, so that later runs are no longer."""
    day, end = date(_FIRST_YEAR, 1, 1), date(_LAST_YEAR, 12, 31)
    in_a_row = 0
    while day <= end:
        in_a_row = in_a_row + 1 if calendar.excludes(day) else 0
        if in_a_row > EXCLUDED_DAYS_IN_A_ROW_MAX:
            raise InvalidInput(
                f"more than {EXCLUDED_DAYS_IN_A_ROW_MAX} days in a row are excluded, up to {day}",
                field="excluded_yearly" if calendar.excluded_yearly else "excluded_dates",
                hint="leave a business day in every year; to stop a job, pause it",
            )
        day += DAY


@lru_cache(maxsize=16_384)
def day_start(zone: ZoneInfo, day: date) -> datetime:
    """The first instant at which the clocks of the zone show midnight of that day, or later."""
    return at_wall_time(zone, datetime.combine(day, time()), DstOverlap.FIRST)[0]


def day_of(zone: ZoneInfo, instant: datetime) -> date:
    """The day whose instants include this one."""
    local = instant.astimezone(zone)
    day = local.date()
    # Where clocks go back over midnight, the old day shows again after the new one has begun.
    return day + DAY if local.fold and day_start(zone, day + DAY) <= instant else day


def at_wall_time(zone: ZoneInfo, wall_time: datetime, overlap: DstOverlap) -> tuple[datetime, bool]:
    """The instant of a wall time; if it does not exist, the first one after the gap, and True.

    One instant has one answer, so BOTH means the first here.
    """
    local = wall_time.replace(tzinfo=zone, fold=overlap is DstOverlap.LAST)
    instant = local.astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None, fold=0) == wall_time:
        return instant, False
    # Read with the offset before the gap, the wall time lies in the stretch after it.
    instant = local.replace(fold=0).astimezone(UTC)
    after_gap = stretch_at(zone, (instant - EPOCH) // timedelta(seconds=1))
    return EPOCH + timedelta(seconds=after_gap.start), True
