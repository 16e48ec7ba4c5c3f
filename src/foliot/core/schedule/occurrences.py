"""When a job fires: the instants of a schedule of any type, and why one moved.

CRON and INTERVAL come again; ONE_TIME, DELAYED and IMMEDIATE have one instant; MANUAL and AFTER
none of their own. An instant keeps its nominal time however late it is settled. `start_at` is the
first moment that counts (creation, where it lies before that) and `end_at` the first that does not;
the calendar has its say before them. An interval counts from `start_at`, also from a past one;
without one its first instant is one interval after creation, since IMMEDIATE and `start_at` are the
ways to ask for a run at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from foliot.core.cron.expression import parse
from foliot.core.errors import InvalidSchedule
from foliot.core.ids import JobId, microseconds
from foliot.core.model import Schedule, ScheduleType
from foliot.core.schedule.business_days import on_business_days
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.timeline import (
    TICK,
    Bounded,
    CronLine,
    IntervalLine,
    Listed,
    Occurrence,
    Timeline,
)
from foliot.core.zones import zone

BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ScheduleFacts:
    """What the instants depend on besides the schedule. `calendar` is the one it names."""

    job_id: JobId
    created_at: datetime
    calendar: Calendar | None = None
    fired_count: int = 0

    def runs_left(self, schedule: Schedule) -> int | None:
        """How many more may fire; None if there is no limit."""
        if schedule.max_runs is None:
            return None
        return max(0, schedule.max_runs - self.fired_count)


def next_occurrence(
    schedule: Schedule, facts: ScheduleFacts, after: datetime | None
) -> Occurrence | None:
    """The first occurrence strictly after, be it run or skipped; None for `after`: the very first.

    `after` is the moment up to which everything is settled. After an edit that is the time of the
    edit, so that the new schedule begins there.
    """
    if facts.runs_left(schedule) == 0:
        return None
    return timeline(schedule, facts).next(after or BEGINNING)


def occurrences(
    schedule: Schedule, facts: ScheduleFacts, after: datetime | None
) -> Iterator[Occurrence]:
    """Every occurrence from there on, skipped ones included, up to the last of `max_runs`."""
    line, left, at = timeline(schedule, facts), facts.runs_left(schedule), after or BEGINNING
    while left != 0 and (found := line.next(at)) is not None:
        yield found
        at = found.instant
        left = left if left is None or found.skip_reason else left - 1


def fires(schedule: Schedule, facts: ScheduleFacts, after: datetime | None) -> Iterator[Occurrence]:
    """What will run from there on: the preview."""
    line, left, at = timeline(schedule, facts), facts.runs_left(schedule), after or BEGINNING
    while left != 0 and (found := line.next_fire(at)) is not None:
        yield found
        at = found.instant
        left = left if left is None else left - 1


def timeline(schedule: Schedule, facts: ScheduleFacts) -> Timeline:
    """All occurrences of a valid schedule; `max_runs` is for the caller to count."""
    match schedule.type:
        case ScheduleType.CRON | ScheduleType.INTERVAL:
            return _recurring(schedule, facts)
        case ScheduleType.ONE_TIME:
            return _single(_given(schedule.run_at, "run_at"))
        case ScheduleType.DELAYED:
            delay = timedelta(seconds=_given(schedule.delay_seconds, "delay_seconds"))
            return _single(facts.created_at + delay)
        case ScheduleType.IMMEDIATE:
            return _single(facts.created_at)
        case ScheduleType.MANUAL | ScheduleType.AFTER:
            return Listed(())


def _single(instant: datetime) -> Timeline:
    return Listed((Occurrence(instant.astimezone(UTC)),))


def _recurring(schedule: Schedule, facts: ScheduleFacts) -> Timeline:
    job_zone = zone(schedule.timezone)
    line: Timeline
    if schedule.type is ScheduleType.INTERVAL:
        step = round(_given(schedule.interval_seconds, "interval_seconds") * 1_000_000)
        created = microseconds(facts.created_at)
        first = microseconds(schedule.start_at) if schedule.start_at else created + step
        line = IntervalLine(first, step)
    else:
        expression = _given(schedule.cron_expression, "cron_expression")
        cron = parse(expression, seed=str(facts.job_id))
        line = CronLine(cron, job_zone, schedule.dst_gap, schedule.dst_overlap)
    if schedule.calendar is not None:
        calendar = facts.calendar
        if calendar is None:
            raise InvalidSchedule(
                f"there is no calendar named {schedule.calendar!r}", field="calendar"
            )
        days_of = zone(calendar.timezone) if calendar.timezone else job_zone
        line = on_business_days(line, calendar, days_of, schedule.dst_gap, schedule.dst_overlap)
    return Bounded(line, _beginning(schedule, facts), schedule.end_at)


def _beginning(schedule: Schedule, facts: ScheduleFacts) -> datetime:
    """The last moment that does not count. A job owes nothing for the time before it existed."""
    if schedule.start_at is None or schedule.start_at < facts.created_at:
        return facts.created_at
    return schedule.start_at - TICK


def _given(value: Value | None, field: str) -> Value:
    if value is None:
        raise InvalidSchedule("is missing", field=field)
    return value
