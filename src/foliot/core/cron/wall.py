"""Matching wall times of a cron expression: the next one, the last one, how many.

A wall time is a count of seconds since 1970 on a clock that knows no zone. Counting is by days
times matches per day, never by listing. Searches look at each month at most once: a match is at
most forty years off (29 February on one weekday, across a year like 2100), or past the year 9999.
"""

from datetime import date
from typing import Final

from foliot.core.cron.days import LAST_ORDINAL, days_in
from foliot.core.cron.expression import Cron

DAY: Final = 86_400
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()


def next_wall(cron: Cron, wall: int) -> int | None:
    """The first match at or after `wall`."""
    day, second = divmod(wall, DAY)
    found = _day_at_or_after(cron, day)
    if found == day:
        time = _time_at_or_after(cron, second)
        if time >= 0:
            return day * DAY + time
        found = _day_at_or_after(cron, day + 1)
    return None if found is None else found * DAY + _time_at_or_after(cron, 0)


def previous_wall(cron: Cron, wall: int) -> int | None:
    """The last match at or before `wall`."""
    day, second = divmod(wall, DAY)
    found = _day_at_or_before(cron, day)
    if found == day:
        time = _time_at_or_before(cron, second)
        if time >= 0:
            return day * DAY + time
        found = _day_at_or_before(cron, day - 1)
    return None if found is None else found * DAY + _time_at_or_before(cron, DAY - 1)


def count_walls(cron: Cron, start: int, end: int) -> int:
    """How many matches lie in start <= wall < end."""
    if start >= end:
        return 0
    first_day, first_second = divmod(start, DAY)
    last_day, last_second = divmod(end, DAY)
    a_day = cron.hours.bit_count() * cron.minutes.bit_count() * cron.seconds.bit_count()
    count = a_day * _count_days(cron, first_day, last_day)
    if _day_at_or_after(cron, first_day) == first_day:
        count -= _times_before(cron, first_second)
    if _day_at_or_after(cron, last_day) == last_day:
        count += _times_before(cron, last_second)
    return count


def _time_at_or_after(cron: Cron, second_of_day: int) -> int:
    """The first matching second of the day from there on, or -1."""
    minute_of_day, second = divmod(second_of_day, 60)
    hour, minute = divmod(minute_of_day, 60)
    if cron.hours >> hour & 1:
        if cron.minutes >> minute & 1:
            left = cron.seconds >> second
            if left:
                return second_of_day + (left & -left).bit_length() - 1
        left = cron.minutes >> minute + 1
        if left:
            minute += (left & -left).bit_length()
            return hour * 3600 + minute * 60 + _lowest(cron.seconds)
    left = cron.hours >> hour + 1
    if not left:
        return -1
    hour += (left & -left).bit_length()
    return hour * 3600 + _lowest(cron.minutes) * 60 + _lowest(cron.seconds)


def _time_at_or_before(cron: Cron, second_of_day: int) -> int:
    """The last matching second of the day up to there, or -1."""
    minute_of_day, second = divmod(second_of_day, 60)
    hour, minute = divmod(minute_of_day, 60)
    if cron.hours >> hour & 1:
        if cron.minutes >> minute & 1:
            seconds = cron.seconds & (2 << second) - 1
            if seconds:
                return second_of_day - second + seconds.bit_length() - 1
        minutes = cron.minutes & (1 << minute) - 1
        if minutes:
            return hour * 3600 + (minutes.bit_length() - 1) * 60 + cron.seconds.bit_length() - 1
    hours = cron.hours & (1 << hour) - 1
    if not hours:
        return -1
    minute_of_day = (hours.bit_length() - 1) * 60 + cron.minutes.bit_length() - 1
    return minute_of_day * 60 + cron.seconds.bit_length() - 1


def _times_before(cron: Cron, second_of_day: int) -> int:
    """How many matching seconds a matching day has before that one."""
    minute_of_day, second = divmod(second_of_day, 60)
    hour, minute = divmod(minute_of_day, 60)
    an_hour = cron.minutes.bit_count() * cron.seconds.bit_count()
    count = (cron.hours & (1 << hour) - 1).bit_count() * an_hour
    if cron.hours >> hour & 1:
        count += (cron.minutes & (1 << minute) - 1).bit_count() * cron.seconds.bit_count()
        if cron.minutes >> minute & 1:
            count += (cron.seconds & (1 << second) - 1).bit_count()
    return count


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _day_at_or_after(cron: Cron, day: int) -> int | None:
    """The first matching day from there on; days count from 1970 here and below."""
    ordinal = max(day + _EPOCH_ORDINAL, 1)
    if ordinal > LAST_ORDINAL:
        return None
    start = date.fromordinal(ordinal)
    year, month, from_day = start.year, start.month, start.day
    while True:
        if cron.months >> month & 1:
            before_first, days = days_in(cron.days, year, month)
            left = days >> from_day
            if left:
                return before_first + from_day + _lowest(left) - _EPOCH_ORDINAL
        from_day = 1
        later = cron.months >> month + 1
        if later:
            month += _lowest(later) + 1
        elif year < 9999:
            year, month = year + 1, _lowest(cron.months)
        else:
            return None


def _day_at_or_before(cron: Cron, day: int) -> int | None:
    ordinal = min(day + _EPOCH_ORDINAL, LAST_ORDINAL)
    if ordinal < 1:
        return None
    start = date.fromordinal(ordinal)
    year, month, to_day = start.year, start.month, start.day
    while True:
        if cron.months >> month & 1:
            before_first, days = days_in(cron.days, year, month)
            left = days & (2 << to_day) - 1
            if left:
                return before_first + left.bit_length() - 1 - _EPOCH_ORDINAL
        to_day = 31
        earlier = cron.months & (1 << month) - 1
        if earlier:
            month = earlier.bit_length() - 1
        elif year > 1:
            year, month = year - 1, cron.months.bit_length() - 1
        else:
            return None


def _count_days(cron: Cron, start: int, end: int) -> int:
    """How many matching days lie in start <= day < end."""
    begin = max(start + _EPOCH_ORDINAL, 1)
    stop = min(end + _EPOCH_ORDINAL, LAST_ORDINAL + 1)
    if begin >= stop:
        return 0
    first, last = date.fromordinal(begin), date.fromordinal(stop - 1)
    count = 0
    for year in range(first.year, last.year + 1):
        from_month = first.month if year == first.year else 1
        to_month = last.month if year == last.year else 12
        for month in range(from_month, to_month + 1):
            if cron.months >> month & 1:
                count += days_in(cron.days, year, month)[1].bit_count()
    if cron.months >> first.month & 1:
        count -= (days_in(cron.days, first.year, first.month)[1] & (1 << first.day) - 1).bit_count()
    if cron.months >> last.month & 1:
        count -= (days_in(cron.days, last.year, last.month)[1] >> last.day + 1).bit_count()
    return count
