"""The cron dialect: an expression in, the sets of its fields out.

Five fields, or six with seconds first. Nothing here knows a zone or an instant: `wall` finds
matching wall times and `clock` turns those into instants. An expression that can never match
is refused, so every search for a match ends.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from foliot.core.cron.days import Days, can_match, read_days
from foliot.core.cron.fields import HOUR, MINUTE, MONTH, SECOND, read_field
from foliot.core.errors import InvalidCron

_LONGEST: Final = 256
_HASH: Final = re.compile(r"(?<![A-Z])H(?![A-Z])")
_MACROS: Final = {
    "@HOURLY": "0 * * * *",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@WEEKLY": "0 0 * * 0",
    "@MONTHLY": "0 0 1 * *",
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
}


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression. Sets are bit masks: bit n is set if n matches."""

    expression: str
    seconds: int
    minutes: int
    hours: int
    months: int
    days: Days
    real_time: bool  # the hour field begins with *: once per real slot, DST policies do not apply


def parse(expression: str, *, seed: str = "") -> Cron:
    """Read an expression; `seed`, the job's id as text, decides what H stands for."""
    if len(expression) > _LONGEST:
        raise InvalidCron(
            reason=f"the expression has {len(expression)} characters",
            hint=f"at most {_LONGEST}",
            expression=expression[:_LONGEST],
        )
    return _parse(expression, seed if _HASH.search(expression.upper()) else "")


@lru_cache(maxsize=16_384)
def _parse(expression: str, seed: str) -> Cron:
    try:
        return _read(expression, seed)
    except InvalidCron as error:
        error.expression = expression
        raise


def _read(expression: str, seed: str) -> Cron:
    second, minute, hour, month_day, month, week_day = _fields(expression)
    days_seed = seed if _HASH.search(f"{month_day} {week_day}") else ""
    cron = Cron(
        expression=expression,
        seconds=read_field(SECOND, second, seed),
        minutes=read_field(MINUTE, minute, seed),
        hours=read_field(HOUR, hour, seed),
        months=read_field(MONTH, month, seed),
        days=read_days(month_day, week_day, days_seed),
        real_time=hour.startswith("*"),
    )
    if not can_match(cron.days, cron.months):
        raise InvalidCron(
            reason="the expression can never match",
            hint=f"no date is day {month_day} of month {month} on weekday {week_day}",
        )
    return cron


def _fields(expression: str) -> list[str]:
    """The six fields in capitals; a five-field expression matches at second 0."""
    if not expression.isascii():
        raise InvalidCron(reason="the expression has characters that cron does not know")
    text = expression.upper().strip(" \t")
    if text.startswith("@"):
        text = _expand(text)
    fields = re.split(r"[ \t]+", text) if text else []
    if len(fields) == 5:
        return ["0", *fields]
    if len(fields) == 6:
        return fields
    raise InvalidCron(
        reason=f"the expression has {len(fields)} fields",
        hint="five: minute hour day month weekday, or six with seconds first",
    )


def _expand(text: str) -> str:
    if text in _MACROS:
        return _MACROS[text]
    raise InvalidCron(
        reason=f"there is no macro {text.lower()!r}",
        hint="one of " + ", ".join(name.lower() for name in _MACROS),
    )
