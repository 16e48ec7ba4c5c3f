"""The days of a cron expression in plain English."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from foliot.core.cron.days import Days, MonthDays, WeekDays
from foliot.core.cron.fields import members
from foliot.core.phrases import join, ordinal, runs

_EVERY_DATE: Final = (1 << 32) - 2
_EVERY_WEEKDAY: Final = 127
_WORKDAYS: Final = 0b0111110
_EVERY_MONTH: Final = (1 << 13) - 2
_SHORTEST: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_WHERE_IT_HAS_THEM: Final = ", where the month has them"
_NTH: Final = ("", "first", "second", "third", "fourth", "fifth")
# fmt: off
_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS: Final = (
    "", "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)
# fmt: on


@dataclass(frozen=True, slots=True)
class DayWords:
    """The phrase, and where in the sentence it goes."""

    text: str
    after_time: bool = False  # "at 09:00 on the 1st of every month"
    every_day: bool = False


def day_words(days: Days, months: int) -> DayWords:
    """Which days: both fields and the months."""
    dates, weekdays = days.month_days, days.week_days
    either = not dates.open and not weekdays.open
    every_date = dates.days == _EVERY_DATE
    every_weekday = weekdays.days == _EVERY_WEEKDAY
    if (every_date and every_weekday) or (either and (every_date or every_weekday)):
        return _every_day(months)
    if every_weekday:
        return DayWords(f"on {_date_words(dates, months)}", after_time=True)
    by_weekday = _weekday_words(weekdays, months)
    if every_date:
        # A word of caution ends the sentence: behind it a time would seem to belong to it.
        return DayWords(by_weekday, after_time=not _every_month_has(weekdays))
    by_weekday = by_weekday.removeprefix("on ")
    if either:
        by_date = _date_words(dates, months)
        return DayWords(f"on {by_date}, and also on {by_weekday}", after_time=True)
    named, spans = _runs_of_dates(members(dates.days))
    condition = join(spans + _named_dates(dates, named), "or")
    return DayWords(f"on {by_weekday} if that is {condition} of the month", after_time=True)


def _every_day(months: int) -> DayWords:
    if months == _EVERY_MONTH:
        return DayWords("every day", every_day=True)
    return DayWords(f"every day in {_month_words(months)}")


def _month_words(months: int) -> str:
    names = [
        _MONTHS[first] if first == last else f"{_MONTHS[first]} to {_MONTHS[last]}"
        for first, last in runs(members(months))
    ]
    return join(names)


def _of_months(months: int, parts: int, everywhere: bool) -> str:
    """ "of every month", and a word of caution if not every month has such a day."""
    which = "every month" if months == _EVERY_MONTH else _month_words(months)
    if everywhere:
        return f"of {which}"
    if parts == 1 and months == _EVERY_MONTH:
        return f"of {which} that has one"
    return f"of {which}, where the month has it"


def _date_words(dates: MonthDays, months: int) -> str:
    days = members(dates.days)
    if len(days) == 1 and months.bit_count() == 1 and len(_named_dates(dates, days)) == 1:
        return f"{days[0]} {_month_words(months)}"
    named, spans = _split_spans(days)
    parts = _named_dates(dates, named)
    shortest = min(_SHORTEST[month] for month in members(months))
    latest = max(
        (*named, *dates.nearest, *(distance + 1 for distance in dates.from_end)), default=0
    )
    if any(last > shortest for first, last in runs(days) if first != last):
        return f"{join(spans + parts)} {_of_months(months, 0, everywhere=True)}{_WHERE_IT_HAS_THEM}"
    return f"{join(spans + parts)} {_of_months(months, len(spans + parts), latest <= shortest)}"


def _split_spans(days: Sequence[int]) -> tuple[tuple[int, ...], list[str]]:
    """Days to name one by one, and whole spans in words."""
    if len(days) > 3:
        first, last, step = days[0], days[-1], days[1] - days[0]
        if step > 1 and tuple(range(first, last + 1, step)) == days:
            every = f"every {ordinal(step)} day"
            return (), [f"{every} from the {ordinal(first)} to the {ordinal(last)}"]
    return _runs_of_dates(days)


def _runs_of_dates(days: Sequence[int]) -> tuple[tuple[int, ...], list[str]]:
    found = runs(days)
    spans = [f"the {ordinal(a)} to the {ordinal(b)}" for a, b in found if a != b]
    return tuple(a for a, b in found if a == b), spans


def _named_dates(dates: MonthDays, days: Sequence[int]) -> list[str]:
    parts = [f"the {ordinal(day)}" for day in days]
    parts += [f"the weekday nearest the {ordinal(day)}" for day in dates.nearest]
    for distance in dates.from_end:
        plural = "" if distance == 1 else "s"
        before = f"the day {distance} day{plural} before the last" if distance else "the last day"
        parts.append(before)
    if dates.last_workday:
        parts.append("the last weekday")
    return parts


def _weekday_words(weekdays: WeekDays, months: int) -> str:
    parts = []
    if weekdays.days:
        when = "" if months == _EVERY_MONTH else f" in {_month_words(months)}"
        parts.append(f"every {_weekday_names(weekdays.days)}{when}")
    special = [f"the {_NTH[nth]} {_WEEKDAYS[weekday]}" for weekday, nth in weekdays.nth]
    special += [f"the last {_WEEKDAYS[weekday]}" for weekday in weekdays.last]
    if special:
        of_months = _of_months(months, len(special), _every_month_has(weekdays))
        parts.append(f"on {join(special)} {of_months}")
    return join(parts)


def _every_month_has(weekdays: WeekDays) -> bool:
    return all(nth < 5 for _, nth in weekdays.nth)


def _weekday_names(days: int) -> str:
    """From Monday on; Monday to Friday together are "weekday"."""
    if days == _WORKDAYS:
        return "weekday"
    from_monday = sorted((day + 6) % 7 for day in members(days))
    names = [_WEEKDAYS[(day + 1) % 7] for day in from_monday]
    if len(names) > 2 and len(runs(from_monday)) == 1:
        return f"{names[0]} to {names[-1]}"
    return join(names)
