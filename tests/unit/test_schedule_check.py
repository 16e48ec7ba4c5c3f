"""Every schedule that cannot be kept is refused with the field and the fix."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from foliot.core.errors import InvalidCron, InvalidInput, InvalidSchedule, InvalidTimezone
from foliot.core.ids import JobId
from foliot.core.model import After, Schedule, ScheduleType
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.check import validate
from foliot.core.schedule.occurrences import ScheduleFacts

JOB, PARENT = JobId(UUID(int=1)), JobId(UUID(int=2))
NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)
NAIVE = NOON.replace(tzinfo=None)
CRON = Schedule(ScheduleType.CRON, cron_expression="0 9 * * *")
INTERVAL = Schedule(ScheduleType.INTERVAL, interval_seconds=60)
ONE_TIME = Schedule(ScheduleType.ONE_TIME, run_at=NOON)
DELAYED = Schedule(ScheduleType.DELAYED, delay_seconds=0.5)
IMMEDIATE = Schedule(ScheduleType.IMMEDIATE)
MANUAL = Schedule(ScheduleType.MANUAL)
AFTER = Schedule(ScheduleType.AFTER, after=After((PARENT,)))
ALL = [CRON, INTERVAL, ONE_TIME, DELAYED, IMMEDIATE, MANUAL, AFTER]


def with_field(schedule: Schedule, field: str, value: object) -> Schedule:
    """Also values of a type that the field does not have."""
    return replace(schedule, **{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("schedule", ALL, ids=lambda schedule: schedule.type)
def test_a_plain_schedule_of_every_type_is_kept(schedule: Schedule) -> None:
    validate(schedule)
    validate(replace(schedule, timezone="Europe/Berlin"), ScheduleFacts(JOB, NOON))


@pytest.mark.parametrize(
    "schedule",
    [
        replace(INTERVAL, interval_seconds=0.001),
        replace(INTERVAL, interval_seconds=0.1, jitter_seconds=0.05, max_runs=1),
        replace(CRON, cron_expression="0 0 29 2 *"),
        replace(CRON, start_at=NOON, end_at=NOON + timedelta(days=1), misfire_grace_seconds=1),
        replace(CRON, cron_expression="H 9 * * *", start_at=NOON, end_at=NOON + timedelta(hours=1)),
        replace(DELAYED, delay_seconds=0),
        replace(ONE_TIME, run_at=datetime(1970, 1, 1, tzinfo=UTC), misfire_grace_seconds=60),
        replace(CRON, calendar="biz", start_at=NOON, end_at=NOON + timedelta(days=1)),
        replace(CRON, misfire_max_runs=10_000),
    ],
)
def test_unusual_schedules_are_kept_too(schedule: Schedule) -> None:
    validate(schedule)


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        (replace(CRON, cron_expression=None), "cron_expression"),
        (replace(INTERVAL, interval_seconds=None), "interval_seconds"),
        (replace(ONE_TIME, run_at=None), "run_at"),
        (replace(DELAYED, delay_seconds=None), "delay_seconds"),
        (replace(AFTER, after=None), "after"),
    ],
)
def test_what_a_type_needs_must_be_there(schedule: Schedule, field: str) -> None:
    with pytest.raises(InvalidSchedule, match="needs it") as raised:
        validate(schedule)
    assert raised.value.field == field


STRANGERS = [
    ("cron_expression", "0 9 * * *", {"CRON"}),
    ("interval_seconds", 60, {"INTERVAL"}),
    ("run_at", NOON, {"ONE_TIME"}),
    ("delay_seconds", 5, {"DELAYED"}),
    ("after", After((PARENT,)), {"AFTER"}),
    ("start_at", NOON, {"CRON", "INTERVAL"}),
    ("end_at", NOON, {"CRON", "INTERVAL"}),
    ("max_runs", 5, {"CRON", "INTERVAL"}),
    ("calendar", "biz", {"CRON", "INTERVAL"}),
    ("jitter_seconds", 5, {"CRON", "INTERVAL", "ONE_TIME", "DELAYED"}),
    ("misfire_grace_seconds", 5, {"CRON", "INTERVAL", "ONE_TIME", "DELAYED", "IMMEDIATE"}),
]


@pytest.mark.parametrize("schedule", ALL, ids=lambda schedule: schedule.type)
@pytest.mark.parametrize(("field", "value", "owners"), STRANGERS)
def test_a_field_of_another_type_is_refused(
    schedule: Schedule, field: str, value: object, owners: set[str]
) -> None:
    given = with_field(schedule, field, value)
    if schedule.type in owners:
        validate(given)
        return
    with pytest.raises(InvalidSchedule, match="leave it out") as raised:
        validate(given)
    assert raised.value.field == field


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        *[
            (with_field(INTERVAL, "interval_seconds", value), "interval_seconds")
            for value in (0, -1, 0.0009, NAN, INFINITE, -INFINITE, 1e12, 10**400, True, "60")
        ],
        *[(replace(DELAYED, delay_seconds=value), "delay_seconds") for value in (-0.1, NAN, 1e12)],
        *[(replace(CRON, jitter_seconds=value), "jitter_seconds") for value in (-1, NAN, 86_401)],
        *[
            (replace(ONE_TIME, misfire_grace_seconds=value), "misfire_grace_seconds")
            for value in (-1, 0, 0.999, True, NAN, INFINITE)
        ],
        *[(with_field(CRON, "max_runs", value), "max_runs") for value in (0, -1, 2**31, 1.5, True)],
        *[
            (with_field(CRON, "misfire_max_runs", value), "misfire_max_runs")
            for value in (0, -1, 10_001, 1.5)
        ],
        (replace(ONE_TIME, run_at=NAIVE), "run_at"),
        (replace(CRON, start_at=NAIVE), "start_at"),
        (replace(CRON, end_at=NAIVE), "end_at"),
        (replace(ONE_TIME, run_at=NOON.replace(year=1969)), "run_at"),
        (replace(CRON, end_at=NOON.replace(year=9000)), "end_at"),
        (replace(CRON, start_at=NOON, end_at=NOON), "end_at"),
        (replace(INTERVAL, start_at=NOON, end_at=NOON - timedelta(1)), "end_at"),
        (replace(CRON, start_at=NOON, end_at=NOON + timedelta(hours=1)), "end_at"),
        (replace(AFTER, after=After(())), "after.jobs"),
        (replace(AFTER, after=After((PARENT, PARENT))), "after.jobs"),
        (
            replace(AFTER, after=After(tuple(JobId(UUID(int=n)) for n in range(1001)))),
            "after.jobs",
        ),
    ],
)
def test_a_value_that_cannot_be_kept_is_refused(schedule: Schedule, field: str) -> None:
    with pytest.raises(InvalidSchedule) as raised:
        validate(schedule)
    assert raised.value.field == field
    assert raised.value.hint


def test_an_end_at_the_start_is_named_as_such() -> None:
    with pytest.raises(InvalidSchedule, match="end_at: is not after start_at"):
        validate(replace(INTERVAL, start_at=NOON, end_at=NOON))


@pytest.mark.parametrize("schedule", ALL, ids=lambda schedule: schedule.type)
def test_every_schedule_needs_a_real_zone(schedule: Schedule) -> None:
    with pytest.raises(InvalidTimezone):
        validate(replace(schedule, timezone="Mars/Olympus"))


@pytest.mark.parametrize("expression", ["", "0 9 * *", "0 0 30 2 *"])
def test_a_bad_expression_is_refused(expression: str) -> None:
    with pytest.raises(InvalidCron):
        validate(replace(CRON, cron_expression=expression))


def test_a_job_cannot_follow_itself() -> None:
    with pytest.raises(InvalidSchedule, match="names the job itself"):
        validate(replace(AFTER, after=After((PARENT, JOB))), ScheduleFacts(JOB, NOON))


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        (replace(CRON, end_at=NOON + timedelta(hours=1)), "end_at"),
        (replace(INTERVAL, end_at=NOON + timedelta(seconds=60)), "end_at"),
        (replace(CRON, cron_expression="0 9 * * SAT", calendar="biz"), "calendar"),
    ],
)
def test_a_job_with_no_instant_left_is_refused(schedule: Schedule, field: str) -> None:
    facts = ScheduleFacts(JOB, NOON, Calendar("biz", excluded_weekdays=frozenset({6, 7})))
    with pytest.raises(InvalidSchedule, match="no instant is left") as raised:
        validate(schedule, facts)
    assert raised.value.field == field


def test_the_error_reads_as_a_sentence() -> None:
    with pytest.raises(InvalidInput) as raised:
        validate(replace(CRON, interval_seconds=60))
    assert str(raised.value) == (
        "interval_seconds: does not belong to a schedule of type CRON"
        " (leave it out; it belongs to INTERVAL)"
    )


def test_a_grace_that_nothing_could_meet_is_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidSchedule) as refused:
        validate(replace(CRON, misfire_grace_seconds=0))
    assert refused.value.field == "misfire_grace_seconds"
    assert "every fire is a little late" in str(refused.value)
    assert "at least 1, or leave it out" in str(refused.value)
