"""The instants of every type of schedule, their bounds, and the notes of the preview."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from uuid import UUID

import pytest

from foliot.core.errors import InvalidSchedule
from foliot.core.ids import JobId
from foliot.core.model import (
    After,
    CalendarRule,
    DstGap,
    DstOverlap,
    Schedule,
    ScheduleType,
    SkipReason,
)
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.occurrences import (
    ScheduleFacts,
    fires,
    next_occurrence,
    occurrences,
    timeline,
)

JOB = JobId(UUID(int=1))
CREATED = datetime(2027, 1, 4, 12, 0, 30, tzinfo=UTC)  # a Monday
WEEKEND = frozenset({6, 7})


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def facts(calendar: Calendar | None = None, fired_count: int = 0) -> ScheduleFacts:
    return ScheduleFacts(JOB, CREATED, calendar, fired_count)


def cron(expression: str, timezone: str = "UTC", **fields: object) -> Schedule:
    return Schedule(
        ScheduleType.CRON,
        cron_expression=expression,
        timezone=timezone,
        **fields,  # type: ignore[arg-type]
    )


def interval(seconds: float, **fields: object) -> Schedule:
    return Schedule(
        ScheduleType.INTERVAL,
        interval_seconds=seconds,
        **fields,  # type: ignore[arg-type]
    )


def instants(schedule: Schedule, count: int, calendar: Calendar | None = None) -> list[datetime]:
    return [one.instant for one in islice(occurrences(schedule, facts(calendar), None), count)]


@pytest.mark.parametrize(
    ("schedule", "instant"),
    [
        (Schedule(ScheduleType.ONE_TIME, run_at=utc("2027-01-05T09:00")), "2027-01-05T09:00"),
        (Schedule(ScheduleType.ONE_TIME, run_at=utc("2001-01-01T00:00")), "2001-01-01T00:00"),
        (Schedule(ScheduleType.DELAYED, delay_seconds=0.25), "2027-01-04T12:00:30.250"),
        (Schedule(ScheduleType.IMMEDIATE), "2027-01-04T12:00:30"),
    ],
)
def test_some_types_have_one_instant(schedule: Schedule, instant: str) -> None:
    assert instants(schedule, 2) == [utc(instant)]


@pytest.mark.parametrize(
    "schedule", [Schedule(ScheduleType.MANUAL), Schedule(ScheduleType.AFTER, after=After((JOB,)))]
)
def test_some_types_have_no_instant_of_their_own(schedule: Schedule) -> None:
    assert next_occurrence(schedule, facts(), None) is None


def test_a_single_instant_is_in_utc_whatever_zone_it_was_given_in() -> None:
    local = datetime.fromisoformat("2027-01-05T09:00+05:00")
    [instant] = instants(Schedule(ScheduleType.ONE_TIME, run_at=local), 2)
    assert instant.tzinfo is UTC
    assert instant == local


def test_a_cron_schedule_begins_after_creation() -> None:
    assert instants(cron("0 9,12 * * *"), 2) == [utc("2027-01-05T09:00"), utc("2027-01-05T12:00")]


def test_an_interval_begins_one_step_after_creation() -> None:
    assert instants(interval(60), 2) == [utc("2027-01-04T12:01:30"), utc("2027-01-04T12:02:30")]


def test_an_interval_with_a_start_begins_at_it() -> None:
    schedule = interval(60, start_at=utc("2027-02-01T00:00"))
    assert instants(schedule, 2) == [utc("2027-02-01T00:00"), utc("2027-02-01T00:01")]


def test_an_interval_counts_from_a_past_start_and_owes_nothing_before_it_existed() -> None:
    schedule = interval(3600, start_at=utc("2027-01-04T10:30"))
    assert instants(schedule, 2) == [utc("2027-01-04T12:30"), utc("2027-01-04T13:30")]


def test_a_tenth_of_a_second_never_drifts() -> None:
    schedule = interval(0.1, start_at=utc("2027-01-01T00:00"))
    late = next_occurrence(schedule, facts(), utc("2036-12-31T23:59:59.950"))
    assert late is not None
    assert late.instant == utc("2037-01-01T00:00")


def test_start_counts_and_end_does_not() -> None:
    schedule = cron("0 * * * *", start_at=utc("2027-02-01T10:00"), end_at=utc("2027-02-01T12:00"))
    assert instants(schedule, 5) == [utc("2027-02-01T10:00"), utc("2027-02-01T11:00")]


def test_runs_are_counted_and_skips_are_not() -> None:
    calendar = Calendar("biz", excluded_weekdays=WEEKEND)
    schedule = cron("0 9 * * *", calendar="biz", max_runs=5)
    found = list(occurrences(schedule, facts(calendar), None))
    assert [one.skip_reason for one in found] == [None] * 4 + [SkipReason.CALENDAR] * 2 + [None]


@pytest.mark.parametrize(("fired_count", "left"), [(2, 1), (3, 0), (4, 0)])
def test_what_has_fired_is_not_counted_again(fired_count: int, left: int) -> None:
    schedule = cron("0 9 * * *", max_runs=3)
    ahead = facts(fired_count=fired_count)
    assert len(list(occurrences(schedule, ahead, None))) == left
    assert len(list(fires(schedule, ahead, None))) == left
    assert (next_occurrence(schedule, ahead, None) is not None) == bool(left)


def test_a_missing_calendar_is_named() -> None:
    with pytest.raises(InvalidSchedule, match="calendar: there is no calendar named 'biz'"):
        timeline(cron("0 9 * * *", calendar="biz"), facts())


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        (Schedule(ScheduleType.CRON), "cron_expression"),
        (Schedule(ScheduleType.INTERVAL), "interval_seconds"),
        (Schedule(ScheduleType.ONE_TIME), "run_at"),
        (Schedule(ScheduleType.DELAYED), "delay_seconds"),
    ],
)
def test_a_schedule_that_was_never_checked_names_what_it_lacks(
    schedule: Schedule, field: str
) -> None:
    with pytest.raises(InvalidSchedule) as raised:
        timeline(schedule, facts())
    assert raised.value.field == field


def notes(schedule: Schedule, after: str, count: int, calendar: Calendar | None = None) -> object:
    found = islice(occurrences(schedule, facts(calendar), utc(after)), count)
    return [(f"{one.instant:%m-%dT%H:%M}", one.note, one.skip_reason) for one in found]


def test_a_local_time_that_does_not_exist_runs_after_the_gap_and_says_so() -> None:
    assert notes(cron("30 2 * * *", "America/New_York"), "2027-03-13T12:00", 2) == [
        (
            "03-14T07:00",
            "02:30 does not exist on 2027-03-14 in New York: moved to 03:00",
            None,
        ),
        ("03-15T06:30", None, None),
    ]


def test_a_local_time_that_does_not_exist_can_be_skipped() -> None:
    schedule = cron("30 2 * * *", "America/New_York", dst_gap=DstGap.SKIP)
    assert notes(schedule, "2027-03-13T12:00", 2) == [
        (
            "03-14T07:00",
            "02:30 does not exist on 2027-03-14 in New York: skipped",
            SkipReason.DST_GAP,
        ),
        ("03-15T06:30", None, None),
    ]
    upcoming = next(fires(schedule, facts(), utc("2027-03-13T12:00")))
    assert upcoming.instant == utc("2027-03-15T06:30")


def test_a_local_time_that_comes_twice_follows_its_policy() -> None:
    first, last = utc("2027-11-07T05:30"), utc("2027-11-07T06:30")
    for overlap, wanted in [
        (DstOverlap.FIRST, [first]),
        (DstOverlap.LAST, [last]),
        (DstOverlap.BOTH, [first, last]),
    ]:
        schedule = cron(
            "30 1 * * *",
            "America/New_York",
            dst_overlap=overlap,
            start_at=utc("2027-11-07T00:00"),
            end_at=utc("2027-11-08T00:00"),
        )
        assert instants(schedule, 5) == wanted


def test_an_excluded_day_is_skipped_with_a_note() -> None:
    calendar = Calendar("biz", excluded_weekdays=WEEKEND)
    assert notes(cron("0 9 * * *", calendar="biz"), "2027-01-08T10:00", 3, calendar) == [
        ("01-09T09:00", "2027-01-09 is excluded by calendar biz", SkipReason.CALENDAR),
        ("01-10T09:00", "2027-01-10 is excluded by calendar biz", SkipReason.CALENDAR),
        ("01-11T09:00", None, None),
    ]


@pytest.mark.parametrize(
    ("rule", "word", "moved"),
    [
        (CalendarRule.NEXT_BUSINESS_DAY, "next", "01-11T09:00"),
        (CalendarRule.PREVIOUS_BUSINESS_DAY, "previous", "01-08T09:00"),
    ],
)
def test_an_excluded_day_moves_with_a_note(rule: CalendarRule, word: str, moved: str) -> None:
    calendar = Calendar("biz", rule, excluded_weekdays=WEEKEND)
    note = f"moved from 2027-01-09 to the {word} business day by calendar biz"
    schedule = cron("0 9 * * SAT", calendar="biz")
    assert notes(schedule, "2027-01-06T00:00", 1, calendar) == [(moved, note, None)]


@pytest.mark.parametrize(
    "rule", [CalendarRule.NEXT_BUSINESS_DAY, CalendarRule.PREVIOUS_BUSINESS_DAY]
)
def test_moves_that_coincide_are_one(rule: CalendarRule) -> None:
    calendar = Calendar("biz", rule, excluded_weekdays=WEEKEND)
    daily = instants(cron("0 9 * * *", calendar="biz"), 10, calendar)
    assert daily == instants(cron("0 9 * * MON-FRI"), 10)


def test_the_moment_of_creation_is_no_instant_that_a_calendar_could_move() -> None:
    created = utc("2027-01-09T12:00")  # a Saturday
    calendar = Calendar("biz", CalendarRule.NEXT_BUSINESS_DAY, excluded_weekdays=WEEKEND)
    schedule = interval(3 * 86_400, calendar="biz")
    first = next_occurrence(schedule, ScheduleFacts(JOB, created, calendar), None)
    assert first is not None
    assert first.instant == utc("2027-01-12T12:00")


def test_an_interval_shorter_than_a_day_is_skipped_on_excluded_days_under_any_rule() -> None:
    calendar = Calendar("biz", CalendarRule.NEXT_BUSINESS_DAY, excluded_weekdays=WEEKEND)
    schedule = interval(6 * 3600, start_at=utc("2027-01-08T18:00"), calendar="biz")
    found = list(islice(occurrences(schedule, facts(calendar), None), 11))
    assert [one.skip_reason for one in found] == [None, *[SkipReason.CALENDAR] * 8, None, None]
    assert found[-2].instant == utc("2027-01-11T00:00")


def test_a_payroll_every_fourteen_days_comes_before_the_holiday() -> None:
    calendar = Calendar(
        "bank",
        CalendarRule.PREVIOUS_BUSINESS_DAY,
        excluded_weekdays=WEEKEND,
        excluded_yearly=frozenset({(1, 15)}),
    )
    schedule = interval(14 * 86_400, start_at=utc("2027-01-01T09:00"), calendar="bank")
    assert instants(schedule, 3, calendar) == [
        utc("2027-01-14T09:00"),
        utc("2027-01-29T09:00"),
        utc("2027-02-12T09:00"),
    ]


def test_a_calendar_of_another_zone_counts_that_zone_s_days() -> None:
    calendar = Calendar("ny", timezone="America/New_York", excluded_weekdays=WEEKEND)
    schedule = cron("0 1 * * *", calendar="ny")
    found = [one.instant for one in islice(fires(schedule, facts(calendar), None), 6)]
    # 01:00 on Saturday is still Friday evening in New York; 01:00 on Monday is Sunday there.
    assert f"{found[4]:%a}" == "Sat"
    assert f"{found[5]:%a}" == "Tue"


def test_a_schedule_that_only_has_excluded_days_never_fires() -> None:
    calendar = Calendar("biz", excluded_weekdays=WEEKEND)
    schedule = cron("0 9 * * SAT", calendar="biz")
    assert next(fires(schedule, facts(calendar), None), None) is None
    assert next_occurrence(schedule, facts(calendar), None) is not None


def test_the_hashed_minute_is_the_job_s_own() -> None:
    minutes = {
        occurrence.instant.minute
        for number in range(20)
        for occurrence in islice(
            fires(cron("H * * * *"), ScheduleFacts(JobId(UUID(int=number)), CREATED), None), 3
        )
    }
    assert len(minutes) > 5


def test_the_end_of_time_is_no_instant() -> None:
    schedule = interval(86_400 * 365, start_at=utc("2027-01-01T00:00"))
    last = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
    assert next_occurrence(schedule, facts(), last) is None
