"""Which instants a schedule has between two moments, worked out by other code than the product's.

What is simple is arithmetic: every n seconds, intervals, a single moment. Other cron expressions go
to `cronsim`. What neither can tell (calendars, `H`, days of two clocks other than the default) is
refused, so that nobody takes a guess for an oracle.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim

from chaos.facts import Row

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)
_SECOND: Final = 1_000_000
_EVERY_SECONDS: Final = re.compile(r"\*(?:/(\d+))?(?: \*){5}")
_MACROS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_DEFAULTS: Final = {"dst_gap": "RUN_AFTER_GAP", "dst_overlap": "FIRST"}


class CannotTell(Exception):
    """A schedule that this oracle knows nothing of."""


def instants(
    schedule: Row, counted_from: datetime, after: datetime | None, until: datetime
) -> list[datetime]:
    """All of them in after < instant <= until, oldest first, as if it had no `max_runs`.

    `counted_from` is when delays and intervals begin: the creation of the job, or the edit that
    gave it a schedule of this type.
    """
    kind = schedule["type"]
    if kind in ("MANUAL", "AFTER"):
        return []
    if kind in ("ONE_TIME", "DELAYED", "IMMEDIATE"):
        only = _single(schedule, counted_from)
        return [only] if (after is None or after < only) and only <= until else []
    if schedule.get("calendar") is not None:
        raise CannotTell("a calendar")
    low, high = _bounds(schedule, counted_from, after, until)
    if kind == "INTERVAL":
        return list(_interval(schedule, counted_from, low, high))
    return list(_cron(schedule, low, high))


def _single(schedule: Row, counted_from: datetime) -> datetime:
    if schedule["type"] == "ONE_TIME":
        return _time(schedule["run_at"])
    seconds = schedule["delay_seconds"] if schedule["type"] == "DELAYED" else 0
    return counted_from + timedelta(seconds=seconds)


def _bounds(
    schedule: Row, counted_from: datetime, after: datetime | None, until: datetime
) -> tuple[datetime, datetime]:
    """The last moment before, and the last within. `start_at` counts itself, `end_at` does not."""
    low = counted_from
    if schedule.get("start_at") is not None:
        low = max(low, _time(schedule["start_at"]) - _TICK)
    high = until
    if schedule.get("end_at") is not None:
        high = min(high, _time(schedule["end_at"]) - _TICK)
    return (low if after is None else max(low, after)), high


def _interval(
    schedule: Row, counted_from: datetime, low: datetime, high: datetime
) -> Iterator[datetime]:
    step = round(schedule["interval_seconds"] * _SECOND)
    start_at = schedule.get("start_at")
    first = _micros(_time(start_at)) if start_at else _micros(counted_from) + step
    past = max(0, (_micros(low) - first) // step + 1)
    yield from _steps(first + past * step, step, high)


def _cron(schedule: Row, low: datetime, high: datetime) -> Iterator[datetime]:
    written = schedule["cron_expression"].strip()
    expression = " ".join(_MACROS.get(written.lower(), written).split())
    every = _EVERY_SECONDS.fullmatch(expression)
    if every:
        yield from _every_seconds(int(every[1] or 1), low, high)
        return
    if "H" in expression.upper().replace("THU", ""):
        raise CannotTell(f"the H of {written!r}")
    for name, default in _DEFAULTS.items():
        if schedule.get(name, default) != default:
            raise CannotTell(f"{name} {schedule[name]}")
    zone = ZoneInfo(schedule.get("timezone") or "UTC")
    start = low if zone.key == "UTC" else low.astimezone(zone)
    for found in CronSim(expression, start):
        at = found.astimezone(UTC)
        if at > high:
            return
        yield at


def _every_seconds(seconds: int, low: datetime, high: datetime) -> Iterator[datetime]:
    """At every so many seconds of each minute; a minute begins at the same moment in every zone."""
    if 60 % seconds == 0:
        step = seconds * _SECOND
        yield from _steps((_micros(low) // step + 1) * step, step, high)
        return
    minute = _micros(low) // (60 * _SECOND) * 60
    while _EPOCH + timedelta(seconds=minute) <= high:
        for second in range(minute, minute + 60, seconds):
            at = _EPOCH + timedelta(seconds=second)
            if low < at <= high:
                yield at
        minute += 60


def _steps(first: int, step: int, high: datetime) -> Iterator[datetime]:
    for at in range(first, _micros(high) + 1, step):
        yield _EPOCH + timedelta(microseconds=at)


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // _TICK


def _time(value: str | datetime) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value
