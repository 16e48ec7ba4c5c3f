"""Which days of a month match the two day fields of a cron expression.

A month's days depend on its length (28 to 31) and on the weekday it begins with, nothing else, so
each expression has a table of 28 sets and the calendar is never walked day by day. If both fields
are restricted either may match; a field that begins with `*` or `?` is not, and then both must.
"""

import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final

from foliot.core.cron.fields import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    members,
    read_item,
    read_value,
    split_items,
)
from foliot.core.errors import InvalidCron

LAST_ORDINAL: Final = date.max.toordinal()
_MONTH_LENGTHS: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FROM_END: Final = re.compile(r"L(?:-([0-9]{1,2}))?")
_NEAREST: Final = re.compile(r"([0-9]{1,2})W")
_LAST_WEEKDAY: Final = re.compile(r"(\w+)L")
_NTH_WEEKDAY: Final = re.compile(r"(\w+)#(\w+)")


@dataclass(frozen=True, slots=True)
class MonthDays:
    """The day-of-month field."""

    open: bool  # begins with * or ?
    days: int = 0
    from_end: tuple[int, ...] = ()  # L is 0, L-3 is 3
    nearest: tuple[int, ...] = ()  # 15W: the workday nearest to the 15th
    last_workday: bool = False  # LW


@dataclass(frozen=True, slots=True)
class WeekDays:
    """The day-of-week field; Sunday is 0."""

    open: bool  # begins with * or ?
    days: int = 0
    nth: tuple[tuple[int, int], ...] = ()  # TUE#3 is (2, 3)
    last: tuple[int, ...] = ()  # FRIL is 5


@dataclass(frozen=True, slots=True)
class Days:
    """Both day fields, and for each shape of month the set of days that match."""

    month_days: MonthDays
    week_days: WeekDays
    by_shape: tuple[int, ...]


@lru_cache(maxsize=4096)
def read_days(month_days_text: str, week_days_text: str, seed: str) -> Days:
    """Read both fields and work out the table."""
    month_days = _read_month_days(month_days_text, seed)
    week_days = _read_week_days(week_days_text, seed)
    table = tuple(
        _matching_days(month_days, week_days, first, length)
        for length in range(28, 32)
        for first in range(7)
    )
    return Days(month_days, week_days, table)


def can_match(days: Days, months: int) -> bool:
    """Whether some month ever has a matching day: every month begins with every weekday."""
    lengths = {_MONTH_LENGTHS[month] for month in members(months)}
    if months >> 2 & 1:
        lengths.add(29)
    return any(days.by_shape[(length - 28) * 7 + first] for length in lengths for first in range(7))


def days_in(days: Days, year: int, month: int) -> tuple[int, int]:
    """(ordinal of the day before the 1st, set of matching days) of that month."""
    first = date(year, month, 1).toordinal()
    length = _MONTH_LENGTHS[month]
    if month == 2 and year % 4 == 0 and (year % 100 or year % 400 == 0):
        length = 29
    return first - 1, days.by_shape[(length - 28) * 7 + first % 7]


def _read_month_days(text: str, seed: str) -> MonthDays:
    if text == "?":
        text = "*"
    days, from_end, nearest, last_workday = 0, [], [], False
    for item in split_items(DAY_OF_MONTH, text):
        if item == "LW":
            last_workday = True
        elif match := _FROM_END.fullmatch(item):
            from_end.append(_read_distance(item, match[1]))
        elif match := _NEAREST.fullmatch(item):
            nearest.append(read_value(DAY_OF_MONTH, match[1]))
        else:
            days |= read_item(DAY_OF_MONTH, item, seed)
    return MonthDays(text.startswith("*"), days, tuple(from_end), tuple(nearest), last_workday)


def _read_distance(item: str, text: str | None) -> int:
    if text is None:
        return 0
    if not 1 <= int(text) <= 30:
        raise InvalidCron(
            reason=f"day of month {item!r} is out of range",
            hint="L-1 (the day before the last) to L-30",
        )
    return int(text)


def _read_week_days(text: str, seed: str) -> WeekDays:
    if text == "?":
        text = "*"
    days, nth, last = 0, [], []
    for item in split_items(DAY_OF_WEEK, text):
        if item == "L":
            raise InvalidCron(
                reason="day of week 'L' names no day", hint="write FRIL for the last Friday"
            )
        if match := _LAST_WEEKDAY.fullmatch(item):
            last.append(read_value(DAY_OF_WEEK, match[1]) % 7)
        elif match := _NTH_WEEKDAY.fullmatch(item):
            nth.append((read_value(DAY_OF_WEEK, match[1]) % 7, _read_nth(item, match[2])))
        else:
            days |= read_item(DAY_OF_WEEK, item, seed)
    return WeekDays(text.startswith("*"), days, tuple(nth), tuple(last))


def _read_nth(item: str, text: str) -> int:
    if text not in {"1", "2", "3", "4", "5"}:
        raise InvalidCron(
            reason=f"day of week {item!r} is not understood",
            hint="a month has a first to a fifth of each weekday: #1 to #5",
        )
    return int(text)


def _matching_days(month_days: MonthDays, week_days: WeekDays, first: int, length: int) -> int:
    by_date = _days_by_date(month_days, first, length)
    by_weekday = _days_by_weekday(week_days, first, length)
    if month_days.open or week_days.open:
        return by_date & by_weekday
    return by_date | by_weekday


def _days_by_date(field: MonthDays, first: int, length: int) -> int:
    found = field.days & ((2 << length) - 2)
    for distance in field.from_end:
        if distance < length:
            found |= 1 << length - distance
    for day in field.nearest:
        if day <= length:
            found |= 1 << _nearest_workday(day, first, length)
    if field.last_workday:
        found |= 1 << _nearest_workday(length, first, length)
    return found


def _nearest_workday(day: int, first: int, length: int) -> int:
    """Saturday goes back and Sunday on, unless that leaves the month: then the other way."""
    weekday = (first + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _days_by_weekday(field: WeekDays, first: int, length: int) -> int:
    found = 0
    for day in range(1, length + 1):
        weekday = (first + day - 1) % 7
        nth = (day + 6) // 7
        in_last_week = weekday in field.last and day + 7 > length
        if field.days >> weekday & 1 or (weekday, nth) in field.nth or in_last_week:
            found |= 1 << day
    return found
