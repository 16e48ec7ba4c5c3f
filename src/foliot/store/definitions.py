"""What a job's version keeps of it, as JSON and back: the schedule, the target and the policies.

The shape is that of the REST contract. A field that is missing has the default it has in the
model, so that versions written by an older Foliot can still be read.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Any, Final
from uuid import UUID

from foliot.core.ids import JobId
from foliot.core.model import (
    After,
    AfterMode,
    AfterOn,
    Backoff,
    CalendarRule,
    CommandTarget,
    DstGap,
    DstOverlap,
    HandlerTarget,
    HttpTarget,
    Json,
    MisfirePolicy,
    OverlapPolicy,
    RetryPolicy,
    Schedule,
    ScheduleType,
    Target,
    TargetType,
)
from foliot.core.schedule.calendar import Calendar

_TARGETS: Final = {
    TargetType.HTTP: HttpTarget,
    TargetType.HANDLER: HandlerTarget,
    TargetType.COMMAND: CommandTarget,
}
_TARGET_TYPES: Final = {kind: name for name, kind in _TARGETS.items()}
_SCHEDULE_WORDS: Final[Mapping[str, Callable[[str], object]]] = {
    "type": ScheduleType,
    "dst_gap": DstGap,
    "dst_overlap": DstOverlap,
    "misfire_policy": MisfirePolicy,
    "overlap_policy": OverlapPolicy,
    "run_at": datetime.fromisoformat,
    "start_at": datetime.fromisoformat,
    "end_at": datetime.fromisoformat,
}


def as_json(value: object) -> Json:
    """Any value of the model in the words of the contract."""
    if is_dataclass(value):
        return {one.name: as_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_json(each) for name, each in value.items()}
    if isinstance(value, frozenset):
        return sorted(as_json(each) for each in value)
    if isinstance(value, tuple | list):
        return [as_json(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    return value


def schedule_as_json(schedule: Schedule) -> dict[str, Json]:
    written: dict[str, Json] = as_json(schedule)
    return written


def schedule_from_json(written: Mapping[str, Any]) -> Schedule:
    values: dict[str, Any] = {
        name: _SCHEDULE_WORDS[name](value) if name in _SCHEDULE_WORDS and value else value
        for name, value in written.items()
    }
    if after := values.get("after"):
        jobs = tuple(JobId(UUID(job)) for job in after["jobs"])
        values["after"] = After(jobs, AfterMode(after["mode"]), AfterOn(after["on"]))
    return Schedule(**values)


def target_type(target: Target) -> TargetType:
    return _TARGET_TYPES[type(target)]


def target_as_json(target: Target) -> dict[str, Json]:
    return {"type": str(target_type(target)), **as_json(target)}


def target_from_json(written: Mapping[str, Any]) -> Target:
    values = {name: value for name, value in written.items() if name != "type"}
    if "argv" in values:
        values["argv"] = tuple(values["argv"])
    made: Target = _TARGETS[TargetType(written["type"])](**values)
    return made


def retry_policy_from_json(written: Mapping[str, Any]) -> RetryPolicy:
    values = dict(written)
    if "backoff" in values:
        values["backoff"] = Backoff(values["backoff"])
    for name, value in values.items():
        is_none = value is None and name == "poison_window_seconds"
        if not (is_none or isinstance(value, int | float | Backoff)):
            raise TypeError(f"{name} is no number")
    return RetryPolicy(**values)


def calendar_as_json(calendar: Calendar) -> dict[str, Json]:
    return {
        "name": calendar.name,
        "rule": calendar.rule,
        "timezone": calendar.timezone,
        "excluded_dates": sorted(day.isoformat() for day in calendar.excluded_dates),
        "excluded_weekdays": sorted(calendar.excluded_weekdays),
        "excluded_yearly": sorted(list(day) for day in calendar.excluded_yearly),
    }


def calendar_from_json(written: Mapping[str, Any]) -> Calendar:
    return Calendar(
        name=written["name"],
        rule=CalendarRule(written["rule"]),
        timezone=written["timezone"],
        excluded_dates=frozenset(map(date.fromisoformat, written["excluded_dates"])),
        excluded_weekdays=frozenset(written["excluded_weekdays"]),
        excluded_yearly=frozenset((month, day) for month, day in written["excluded_yearly"]),
    )
