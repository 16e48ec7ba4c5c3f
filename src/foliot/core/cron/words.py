"""A cron expression in plain English: "every weekday at 09:00, New York time".

Each phrase says exactly what its set holds: a step is called "every n minutes" only if it divides
the hour, and what fits no familiar phrase is listed. Clock times are on the 24-hour clock.
"""

from collections.abc import Sequence
from typing import Final

from foliot.core.cron.day_words import day_words
from foliot.core.cron.expression import Cron
from foliot.core.cron.fields import members
from foliot.core.phrases import join, ordinal, runs

_EVERY_MINUTE: Final = (1 << 60) - 1
_EVERY_HOUR: Final = (1 << 24) - 1
_ON_THE_MINUTE: Final = 1  # second 0 alone
_MOST_CLOCK_TIMES: Final = 6
# fmt: off
_CONTINENTS_AND_OCEANS: Final = frozenset((
    "Africa", "America", "Antarctica", "Arctic", "Asia",
    "Atlantic", "Australia", "Europe", "Indian", "Pacific",
))
# fmt: on


def describe(cron: Cron, timezone: str) -> str:
    """When it fires, in words, with the zone it counts in."""
    days = day_words(cron.days, cron.months)
    times = _clock_times(cron)
    if times is not None:
        sentence = f"{times} {days.text}" if days.after_time else f"{days.text} {times}"
    elif days.every_day:
        sentence = _frequency(cron)
    else:
        comma = "" if days.text.startswith("on ") else ","
        sentence = f"{_frequency(cron)}{comma} {days.text}"
    return f"{sentence}, {_zone_words(timezone)}"


def _clock_times(cron: Cron) -> str | None:
    """ "at 09:00 and 17:30", if the times of a day are few enough to be listed."""
    count = cron.hours.bit_count() * cron.minutes.bit_count() * cron.seconds.bit_count()
    if count > _MOST_CLOCK_TIMES:
        return None
    times = [
        _clock(hour, minute, second, cron)
        for hour in members(cron.hours)
        for minute in members(cron.minutes)
        for second in members(cron.seconds)
    ]
    return f"at {join(times)}"


def _clock(hour: int, minute: int, second: int, cron: Cron) -> str:
    shown = f"{hour:02}:{minute:02}"
    return shown if cron.seconds == _ON_THE_MINUTE else f"{shown}:{second:02}"


def _frequency(cron: Cron) -> str:
    """How often within a day, when the times are too many to list."""
    if cron.seconds == _ON_THE_MINUTE:
        return _minutes_of_the_day(cron) or _minutes_of_hours(cron)
    return _seconds_of_minutes(cron)


def _minutes_of_the_day(cron: Cron) -> str | None:
    """One even rhythm over the day, or over a run of hours."""
    hours, minutes = members(cron.hours), members(cron.minutes)
    if len(minutes) == 1:
        rhythm = "every hour"
        step = _even_step(hours, 24)
        if step is not None and step > 1:
            return f"every {step} hours from {hours[0]:02}:{minutes[0]:02}"
    else:
        step = _even_step(minutes, 60)
        if step is None:
            return None
        rhythm = "every minute" if step == 1 else f"every {step} minutes"
    if cron.hours == _EVERY_HOUR:
        if len(minutes) == 1 and minutes[0]:
            return f"at minute {minutes[0]} of every hour"
        start = f", from minute {minutes[0]} of every hour on" if minutes[0] else ""
        return rhythm + start
    if len(runs(hours)) == 1:
        return f"{rhythm} from {hours[0]:02}:{minutes[0]:02} to {hours[-1]:02}:{minutes[-1]:02}"
    return None


def _minutes_of_hours(cron: Cron) -> str:
    minutes = _unit_words("minute", members(cron.minutes), 60)
    lead = "" if minutes.startswith("every") else "at "
    return f"{lead}{minutes} of {_unit_words('hour', members(cron.hours), 24)}"


def _seconds_of_minutes(cron: Cron) -> str:
    seconds = members(cron.seconds)
    step = _even_step(seconds, 60)
    if step is None or (step > 1 and seconds[0]):
        words = _unit_words("second", seconds, 60)
        lead = words if words.startswith("every") else f"at {words}"
    else:
        lead = "every second" if step == 1 else f"every {step} seconds"
    parts = [lead]
    if step is None or seconds[0] or cron.minutes != _EVERY_MINUTE:
        parts.append(_unit_words("minute", members(cron.minutes), 60))
    if cron.hours != _EVERY_HOUR or cron.minutes != _EVERY_MINUTE:
        parts.append(_unit_words("hour", members(cron.hours), 24))
    return " of ".join(parts)


def _even_step(values: tuple[int, ...], size: int) -> int | None:
    """The distance between neighbours, if it is the same everywhere, round the end included."""
    step = size // len(values)
    closes = len(values) * step == size
    return step if closes and tuple(range(values[0], size, step)) == values else None


def _unit_words(unit: str, values: Sequence[int], size: int) -> str:
    if len(values) == size:
        return f"every {unit}"
    if len(values) == 1:
        return f"{unit} {values[0]}"
    step = values[1] - values[0]
    if len(values) > 3 and step > 1 and tuple(range(values[0], values[-1] + 1, step)) == values:
        return f"every {ordinal(step)} {unit} from {values[0]} to {values[-1]}"
    return f"{unit}s {join([str(a) if a == b else f'{a} to {b}' for a, b in runs(values)])}"


def _zone_words(timezone: str) -> str:
    area, slash, place = timezone.partition("/")
    if area == "Etc" or (not slash and timezone.upper() == timezone):
        return "UTC" if timezone in {"Etc/UTC", "UTC"} else timezone
    if area in _CONTINENTS_AND_OCEANS:
        area = ""
    words = f"{area} {place.rpartition('/')[2]}".replace("_", " ").strip()
    return f"{words} time"
