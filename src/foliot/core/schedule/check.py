"""Is this schedule one that can be kept? Every refusal names the field and the fix.

A field that does not belong to the schedule's type is refused rather than ignored: whoever sends
`interval_seconds` with a cron schedule means something that would not happen.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final
from uuid import UUID

from foliot.core.cron.expression import parse
from foliot.core.errors import InvalidSchedule
from foliot.core.ids import JobId
from foliot.core.model import After, Schedule, ScheduleType
from foliot.core.schedule.occurrences import BEGINNING, ScheduleFacts, timeline
from foliot.core.zones import zone

INTERVAL_SECONDS_MIN: Final = 0.001
SECONDS_MAX: Final = 10 * 366 * 86_400.0  # ten years: further away is a mistake in the unit
# Whatever fires is a little late: with less than this next to nothing would.
MISFIRE_GRACE_SECONDS_MIN: Final = 1.0
JITTER_SECONDS_MAX: Final = 86_400.0
MISFIRE_MAX_RUNS_MAX: Final = 10_000
AFTER_JOBS_MAX: Final = 1_000
_COUNT_MAX: Final = 2**31 - 1
YEARS: Final = range(1970, 9000)

_RECURRING: Final = frozenset({ScheduleType.CRON, ScheduleType.INTERVAL})
_TIMED: Final = _RECURRING | {ScheduleType.ONE_TIME, ScheduleType.DELAYED}
# Which types a field belongs to; the first table's fields must also be there.
_NEEDED: Final[Mapping[str, ScheduleType]] = {
    "cron_expression": ScheduleType.CRON,
    "interval_seconds": ScheduleType.INTERVAL,
    "run_at": ScheduleType.ONE_TIME,
    "delay_seconds": ScheduleType.DELAYED,
    "after": ScheduleType.AFTER,
}
_ALLOWED: Final[Mapping[str, frozenset[ScheduleType]]] = {
    "start_at": _RECURRING,
    "end_at": _RECURRING,
    "max_runs": _RECURRING,
    "calendar": _RECURRING,
    "jitter_seconds": _TIMED,
    "misfire_grace_seconds": _TIMED | {ScheduleType.IMMEDIATE},
}


def validate(schedule: Schedule, facts: ScheduleFacts | None = None) -> None:
    """InvalidSchedule, InvalidCron or InvalidTimezone if it cannot be kept.

    With the facts of a job it is also refused if no instant is left for that job to run at.
    """
    zone(schedule.timezone)
    _check_fields(schedule)
    _check_times(schedule)
    _check_numbers(schedule)
    if schedule.cron_expression is not None:
        parse(schedule.cron_expression, seed=str(facts.job_id) if facts else "")
    if schedule.after is not None:
        _check_after(schedule.after, facts)
    _check_something_is_left(schedule, facts)


def _check_fields(schedule: Schedule) -> None:
    for field, owner in _NEEDED.items():
        value = getattr(schedule, field)
        if schedule.type is owner and value is None:
            raise InvalidSchedule(
                f"a schedule of type {owner} needs it", field=field, hint=f"add {field}"
            )
        if schedule.type is not owner and value is not None:
            raise _stranger(schedule, field, frozenset({owner}))
    for field, owners in _ALLOWED.items():
        if schedule.type not in owners and getattr(schedule, field) not in (None, 0):
            raise _stranger(schedule, field, owners)


def _stranger(schedule: Schedule, field: str, owners: frozenset[ScheduleType]) -> InvalidSchedule:
    types = ", ".join(sorted(owners))
    return InvalidSchedule(
        f"does not belong to a schedule of type {schedule.type}",
        field=field,
        hint=f"leave it out; it belongs to {types}",
    )


def _check_times(schedule: Schedule) -> None:
    for field in ("run_at", "start_at", "end_at"):
        value: datetime | None = getattr(schedule, field)
        if value is None:
            continue
        if value.tzinfo is None or value.utcoffset() is None:
            raise InvalidSchedule(
                "has no UTC offset", field=field, hint="add one: 2027-01-01T09:00:00Z"
            )
        if value.year not in YEARS:
            raise InvalidSchedule(
                f"lies in the year {value.year}",
                field=field,
                hint=f"use a time from {YEARS.start} to {YEARS.stop - 1}",
            )
    start, end = schedule.start_at, schedule.end_at
    if start is not None and end is not None and start >= end:
        raise InvalidSchedule(
            "is not after start_at", field="end_at", hint="end_at itself no longer counts"
        )


def _check_numbers(schedule: Schedule) -> None:
    _check_seconds(schedule, "interval_seconds", INTERVAL_SECONDS_MIN, SECONDS_MAX)
    _check_seconds(schedule, "delay_seconds", 0, SECONDS_MAX)
    _check_seconds(schedule, "jitter_seconds", 0, JITTER_SECONDS_MAX)
    _check_grace(schedule)
    _check_count(schedule, "max_runs", _COUNT_MAX)
    _check_count(schedule, "misfire_max_runs", MISFIRE_MAX_RUNS_MAX)


def _check_seconds(schedule: Schedule, field: str, low: float, high: float) -> None:
    value: object = getattr(schedule, field)
    if value is None:
        return
    # NaN and infinity fail the comparison too.
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidSchedule(
            f"{value!r} is not a number of seconds that can be kept",
            field=field,
            hint=f"from {low:g} to {high:.0f}",
        )


def _check_grace(schedule: Schedule) -> None:
    grace = schedule.misfire_grace_seconds
    if grace is not None and 0 <= grace < MISFIRE_GRACE_SECONDS_MIN:
        raise InvalidSchedule(
            f"{grace!r} leaves no time to fire: every fire is a little late",
            field="misfire_grace_seconds",
            hint=f"at least {MISFIRE_GRACE_SECONDS_MIN:g}, or leave it out to fire however late",
        )
    _check_seconds(schedule, "misfire_grace_seconds", MISFIRE_GRACE_SECONDS_MIN, SECONDS_MAX)


def _check_count(schedule: Schedule, field: str, high: int) -> None:
    value: object = getattr(schedule, field)
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= high:
        raise InvalidSchedule(
            f"{value!r} is not a count that can be kept",
            field=field,
            hint=f"a whole number from 1 to {high}",
        )


def _check_after(after: After, facts: ScheduleFacts | None) -> None:
    if not 1 <= len(after.jobs) <= AFTER_JOBS_MAX:
        raise InvalidSchedule(
            f"names {len(after.jobs)} jobs",
            field="after.jobs",
            hint=f"name 1 to {AFTER_JOBS_MAX}",
        )
    if len(set(after.jobs)) < len(after.jobs):
        raise InvalidSchedule("names a job twice", field="after.jobs", hint="name each once")
    if facts is not None and facts.job_id in after.jobs:
        raise InvalidSchedule(
            "names the job itself", field="after.jobs", hint="a job cannot follow itself"
        )


def _check_something_is_left(schedule: Schedule, facts: ScheduleFacts | None) -> None:
    if schedule.type not in _RECURRING:
        return
    if facts is None:
        if schedule.start_at is None or schedule.end_at is None or schedule.calendar is not None:
            return
        if "H" in (schedule.cron_expression or "").upper():
            return  # which minute that is depends on the job
        facts = ScheduleFacts(JobId(UUID(int=0)), schedule.start_at)
    if timeline(schedule, facts).next_fire(BEGINNING) is None:
        raise InvalidSchedule(
            "no instant is left for the job to run at",
            field="calendar" if schedule.calendar and not schedule.end_at else "end_at",
            hint="move start_at or end_at, or change what is excluded",
        )
