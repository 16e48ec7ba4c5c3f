"""A schedule of any type in plain English: "every 5 minutes", "after etl and billing succeed"."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from foliot.core.cron import words as cron_words
from foliot.core.cron.expression import parse
from foliot.core.ids import JobId
from foliot.core.model import After, AfterMode, AfterOn, Schedule, ScheduleType
from foliot.core.phrases import join

_NO_NAMES: Final[Mapping[JobId, str]] = {}
# A day of an interval is 24 hours, not a day of the clock: it is said in hours.
_UNITS: Final = ((3600, "hour"), (60, "minute"))


def describe(
    schedule: Schedule, *, seed: str = "", job_names: Mapping[JobId, str] = _NO_NAMES
) -> str:
    """A valid schedule in words. `seed` is the job's id as text, which says what `H` stands for."""
    return ", ".join([_when(schedule, seed, job_names), *_limits(schedule)])


def _when(schedule: Schedule, seed: str, job_names: Mapping[JobId, str]) -> str:
    match schedule.type:
        case ScheduleType.CRON:
            cron = parse(schedule.cron_expression or "", seed=seed)
            return cron_words.describe(cron, schedule.timezone)
        case ScheduleType.INTERVAL:
            return f"every {_duration(schedule.interval_seconds or 0, once='')}"
        case ScheduleType.ONE_TIME:
            return f"once, at {_moment(schedule.run_at)}"
        case ScheduleType.DELAYED:
            return f"once, {_duration(schedule.delay_seconds or 0)} after it is created"
        case ScheduleType.IMMEDIATE:
            return "once, at once"
        case ScheduleType.MANUAL:
            return "only when triggered"
        case ScheduleType.AFTER:
            return _after(schedule.after, job_names)


def _after(after: After | None, job_names: Mapping[JobId, str]) -> str:
    if after is None:
        return "after no job"
    every = after.mode is AfterMode.ALL
    names = [job_names.get(job, str(job)) for job in after.jobs]
    verb = "succeed" if after.on is AfterOn.SUCCEEDED else "finish"
    if len(names) == 1 or not every:
        verb = "succeeds" if after.on is AfterOn.SUCCEEDED else "finishes"
    return f"after {join(names, 'and' if every else 'or')} {verb}"


def _limits(schedule: Schedule) -> list[str]:
    limits = []
    if schedule.start_at is not None:
        limits.append(f"from {_moment(schedule.start_at)}")
    if schedule.end_at is not None:
        limits.append(f"until {_moment(schedule.end_at)}")
    if schedule.max_runs is not None:
        limits.append("once" if schedule.max_runs == 1 else f"at most {schedule.max_runs} times")
    if schedule.calendar is not None:
        limits.append(f"on the business days of calendar {schedule.calendar}")
    if schedule.jitter_seconds:
        limits.append(f"spread over {_duration(schedule.jitter_seconds)}")
    return limits


def _moment(at: datetime | None) -> str:
    if at is None:
        return "no time"
    shown = at.astimezone(UTC)
    exact = shown.isoformat(sep=" ", timespec="auto").removesuffix("+00:00")
    return f"{shown:%Y-%m-%d %H:%M} UTC" if not shown.second + shown.microsecond else f"{exact} UTC"


def _duration(seconds: float, once: str = "1 ") -> str:
    """ "5 minutes", "0.1 seconds", in the largest unit that fits; `once` is said for one of it."""
    size, unit = next(
        ((size, unit) for size, unit in _UNITS if seconds and seconds % size == 0), (1, "second")
    )
    count = seconds / size
    return f"{once}{unit}" if count == 1 else f"{_plain(count)} {unit}s"


def _plain(number: float) -> str:
    return f"{number:.6f}".rstrip("0").rstrip(".")
