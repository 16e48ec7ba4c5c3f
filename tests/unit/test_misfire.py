"""What fires and what is skipped after an outage or a pause, policy by policy."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.core.ids import JobId
from foliot.core.model import (
    After,
    CalendarRule,
    DstGap,
    MisfirePolicy,
    Schedule,
    ScheduleType,
    SkipReason,
)
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.misfire import Settlement, settle
from foliot.core.schedule.occurrences import ScheduleFacts
from foliot.core.schedule.timeline import Occurrence, Skip

JOB = JobId(UUID(int=1))
MISFIRE, PAUSED = SkipReason.MISFIRE, SkipReason.PAUSED
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)  # a Monday
MINUTELY = Schedule(ScheduleType.CRON, cron_expression="* * * * *")
SINGLE = [
    Schedule(ScheduleType.ONE_TIME, run_at=NOON),
    Schedule(ScheduleType.DELAYED, delay_seconds=3600),
    Schedule(ScheduleType.IMMEDIATE),
]


def facts(created_at: datetime = NOON - timedelta(hours=1), fired_count: int = 0) -> ScheduleFacts:
    calendar = Calendar("biz", excluded_weekdays=frozenset({6, 7}))
    return ScheduleFacts(JOB, created_at, calendar, fired_count)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def missed(first: float, last: float, count: int, reason: SkipReason = MISFIRE) -> Skip:
    return Skip(at(first), at(last), count, reason)


def after_ten_minutes(schedule: Schedule, cause: SkipReason = MISFIRE) -> Settlement:
    """The instants of minutes 1 to 10 are due, the last of them on the dot."""
    return settle(schedule, facts(), after=NOON, now=at(10), cause=cause)


def test_nothing_is_due_before_its_time() -> None:
    early = settle(MINUTELY, facts(), after=NOON, now=at(0.99))
    assert early == Settlement((), (), Occurrence(at(1)))


def test_on_time_an_instant_fires() -> None:
    assert settle(MINUTELY, facts(), after=NOON, now=at(1)) == Settlement(
        (at(1),), (), Occurrence(at(2))
    )


def test_the_newest_fires_by_default_and_the_rest_is_one_record() -> None:
    assert after_ten_minutes(MINUTELY) == Settlement(
        (at(10),), (missed(1, 9, 9),), Occurrence(at(11))
    )


def test_all_fire_up_to_a_number_oldest_first() -> None:
    schedule = replace(MINUTELY, misfire_policy=MisfirePolicy.FIRE_ALL, misfire_max_runs=3)
    settled = after_ten_minutes(schedule)
    assert settled.fires == (at(8), at(9), at(10))
    assert settled.skips == (missed(1, 7, 7),)
    everything = after_ten_minutes(replace(schedule, misfire_max_runs=100))
    assert len(everything.fires) == 10
    assert everything.skips == ()


def test_what_is_over_a_minute_late_is_skipped_by_skip() -> None:
    schedule = replace(MINUTELY, misfire_policy=MisfirePolicy.SKIP)
    assert after_ten_minutes(schedule).fires == (at(9), at(10))
    a_second_later = settle(schedule, facts(), after=NOON, now=at(10) + timedelta(seconds=1))
    assert a_second_later.fires == (at(10),)
    assert a_second_later.skips == (missed(1, 9, 9),)


@pytest.mark.parametrize(("grace_seconds", "oldest"), [(30, 10), (3600, 9)])
def test_skip_and_a_grace_both_count(grace_seconds: float, oldest: int) -> None:
    schedule = replace(
        MINUTELY, misfire_policy=MisfirePolicy.SKIP, misfire_grace_seconds=grace_seconds
    )
    assert after_ten_minutes(schedule).fires[0] == at(oldest)


@pytest.mark.parametrize(("late_seconds", "fired"), [(5, 3), (5.000001, 1)])
def test_a_few_seconds_are_no_misfire(late_seconds: float, fired: int) -> None:
    schedule = Schedule(ScheduleType.INTERVAL, interval_seconds=2.5, start_at=NOON)
    settled = settle(schedule, facts(), after=None, now=NOON + timedelta(seconds=late_seconds))
    assert len(settled.fires) == fired
    assert sum(skip.count for skip in settled.skips) == 3 - fired


@pytest.mark.parametrize("schedule", SINGLE, ids=lambda schedule: schedule.type)
@pytest.mark.parametrize("policy", MisfirePolicy)
def test_a_single_instant_fires_however_late(schedule: Schedule, policy: MisfirePolicy) -> None:
    schedule = replace(schedule, misfire_policy=policy)
    settled = settle(schedule, facts(), after=None, now=NOON + timedelta(days=400))
    assert len(settled.fires) == 1
    assert (settled.skips, settled.next) == ((), None)


@pytest.mark.parametrize("schedule", SINGLE, ids=lambda schedule: schedule.type)
def test_a_single_instant_is_settled_once(schedule: Schedule) -> None:
    assert settle(schedule, facts(), after=NOON, now=at(60)) == Settlement((), (), None)


@pytest.mark.parametrize("schedule", SINGLE[:2], ids=lambda schedule: schedule.type)
@pytest.mark.parametrize(("late_seconds", "fires"), [(30, 1), (30.000001, 0)])
def test_past_its_grace_even_a_single_instant_is_skipped(
    schedule: Schedule, late_seconds: float, fires: int
) -> None:
    schedule = replace(schedule, misfire_grace_seconds=30)
    settled = settle(schedule, facts(), after=None, now=NOON + timedelta(seconds=late_seconds))
    assert len(settled.fires) == fires
    assert settled.skips == (() if fires else (missed(0, 0, 1),))


def test_the_grace_goes_before_the_policy() -> None:
    schedule = replace(MINUTELY, misfire_policy=MisfirePolicy.FIRE_ALL, misfire_grace_seconds=150)
    assert after_ten_minutes(schedule).fires == (at(8), at(9), at(10))
    strict = replace(MINUTELY, misfire_grace_seconds=0)
    late = settle(strict, facts(), after=NOON, now=at(10) + timedelta(seconds=1))
    assert late == Settlement((), (missed(1, 10, 10),), Occurrence(at(11)))


def test_a_pause_gives_its_own_reason() -> None:
    assert after_ten_minutes(MINUTELY, cause=PAUSED).skips == (missed(1, 9, 9, PAUSED),)


def test_instants_end_with_the_last_run() -> None:
    schedule = replace(MINUTELY, misfire_policy=MisfirePolicy.FIRE_ALL, max_runs=4)
    two_left = settle(schedule, facts(fired_count=2), after=NOON, now=at(10))
    assert two_left == Settlement((at(1), at(2)), (), None)
    newest = settle(replace(MINUTELY, max_runs=4), facts(fired_count=3), after=NOON, now=at(10))
    assert newest == Settlement((at(10),), (missed(1, 9, 9),), None)
    none_left = settle(schedule, facts(fired_count=4), after=NOON, now=at(10))
    assert none_left == Settlement((), (), None)
    last_on_time = settle(schedule, facts(fired_count=3), after=NOON, now=at(1))
    assert last_on_time == Settlement((at(1),), (), None)


def test_skips_do_not_count_as_runs() -> None:
    schedule = replace(MINUTELY, max_runs=2)
    settled = settle(schedule, facts(), after=NOON, now=at(10))
    assert settled == Settlement((at(10),), (missed(1, 9, 9),), Occurrence(at(11)))


def test_nothing_is_next_after_the_end() -> None:
    settled = after_ten_minutes(replace(MINUTELY, end_at=at(6)))
    assert settled == Settlement((at(5),), (missed(1, 4, 4),), None)


@pytest.mark.parametrize(
    "schedule", [Schedule(ScheduleType.MANUAL), Schedule(ScheduleType.AFTER, after=After((JOB,)))]
)
def test_a_schedule_without_instants_settles_nothing(schedule: Schedule) -> None:
    assert settle(schedule, facts(), after=None, now=NOON) == Settlement((), (), None)


def test_excluded_days_keep_their_own_reason() -> None:
    schedule = Schedule(ScheduleType.CRON, cron_expression="0 12 * * *", calendar="biz")
    settled = settle(schedule, facts(), after=NOON, now=NOON + timedelta(days=8))
    days = [NOON + timedelta(days=number) for number in range(9)]
    assert settled.fires == (days[8],)
    assert settled.skips == (
        Skip(days[1], days[4], 4, MISFIRE),
        Skip(days[5], days[6], 2, SkipReason.CALENDAR),
        Skip(days[7], days[7], 1, MISFIRE),
    )


def test_an_excluded_day_is_recorded_when_it_comes() -> None:
    schedule = Schedule(ScheduleType.CRON, cron_expression="0 12 * * *", calendar="biz")
    saturday = NOON + timedelta(days=5)
    settled = settle(schedule, facts(), after=saturday - timedelta(days=1), now=saturday)
    assert settled.fires == ()
    assert settled.skips == (Skip(saturday, saturday, 1, SkipReason.CALENDAR),)


def test_held_instants_between_two_fires_are_two_records() -> None:
    schedule = Schedule(
        ScheduleType.CRON,
        cron_expression="0 12 * * *",
        calendar="biz",
        misfire_policy=MisfirePolicy.FIRE_ALL,
    )
    settled = settle(schedule, facts(), after=NOON, now=NOON + timedelta(days=14))
    assert len(settled.fires) == 10
    assert [(skip.count, skip.reason) for skip in settled.skips] == [
        (2, SkipReason.CALENDAR),
        (2, SkipReason.CALENDAR),
    ]


def test_a_local_time_that_does_not_exist_keeps_its_own_reason() -> None:
    schedule = Schedule(
        ScheduleType.CRON,
        cron_expression="30 2 * * *",
        timezone="America/New_York",
        dst_gap=DstGap.SKIP,
    )
    start = datetime(2027, 3, 12, 12, tzinfo=UTC)
    settled = settle(schedule, facts(start), after=start, now=start + timedelta(days=4))
    gap_end = datetime(2027, 3, 14, 7, tzinfo=UTC)
    assert [(skip.count, skip.reason) for skip in settled.skips] == [
        (1, MISFIRE),
        (1, SkipReason.DST_GAP),
        (1, MISFIRE),
    ]
    assert settled.skips[1].from_ == gap_end


def test_reasons_are_told_apart_for_the_last_400_days_only() -> None:
    schedule = Schedule(ScheduleType.CRON, cron_expression="0 12 * * *", calendar="biz")
    start = NOON - timedelta(days=10_000)
    settled = settle(schedule, facts(start), after=start, now=NOON)
    assert len(settled.fires) + sum(skip.count for skip in settled.skips) == 10_000
    assert len(settled.skips) < 2 * 400 / 7 + 3
    assert settled.skips[0].count > 9_500
    assert settled.skips[0].reason is MISFIRE


MILLISECONDS = Schedule(ScheduleType.INTERVAL, interval_seconds=0.001)
MANY = [
    ("on time", MILLISECONDS, timedelta(seconds=5), 5000),
    (
        "jittered",
        replace(MILLISECONDS, jitter_seconds=86_400),
        timedelta(seconds=5),
        5000,
    ),
    (
        "not a minute late",
        replace(MILLISECONDS, misfire_policy=MisfirePolicy.SKIP),
        timedelta(hours=1),
        60_001,
    ),
    (
        "as many as can be asked for",
        replace(MILLISECONDS, misfire_policy=MisfirePolicy.FIRE_ALL, misfire_max_runs=10_000),
        timedelta(hours=1),
        10_000,
    ),
]


@pytest.mark.parametrize(
    ("schedule", "outage", "due"), [case[1:] for case in MANY], ids=[case[0] for case in MANY]
)
def test_a_thousand_fire_at_once_and_the_others_after_them(
    schedule: Schedule, outage: timedelta, due: int
) -> None:
    start, fired, skipped = NOON - outage, 0, 0
    known, after = facts(start), start
    while True:
        begin = time.process_time()
        settled = settle(schedule, known, after=after, now=NOON)
        assert time.process_time() - begin < 0.1
        assert len(settled.fires) <= 1000
        fired += len(settled.fires)
        skipped += sum(skip.count for skip in settled.skips)
        assert settled.next is not None
        if settled.next.instant > NOON:
            break
        assert settled.next.instant == settled.fires[-1] + timedelta(milliseconds=1)
        after = settled.fires[-1]
    assert (fired, fired + skipped) == (due, outage // timedelta(milliseconds=1))


def test_runs_end_where_fires_are_cut() -> None:
    schedule = replace(MINUTELY, misfire_policy=MisfirePolicy.FIRE_ALL, max_runs=4)
    cut = settle(schedule, facts(), after=NOON, now=at(10), at_once=3)
    assert cut == Settlement((at(1), at(2), at(3)), (), Occurrence(at(4)))
    last = settle(schedule, facts(fired_count=3), after=at(3), now=at(10), at_once=3)
    assert last == Settlement((at(4),), (), None)


def test_of_the_newest_the_oldest_fire_first() -> None:
    schedule = replace(MINUTELY, misfire_policy=MisfirePolicy.FIRE_ALL, misfire_max_runs=5)
    cut = settle(schedule, facts(), after=NOON, now=at(10), at_once=2)
    assert cut == Settlement((at(6), at(7)), (missed(1, 5, 5),), Occurrence(at(8)))


DENSE = [
    Schedule(ScheduleType.CRON, cron_expression="* * * * * *", timezone="America/New_York"),
    Schedule(ScheduleType.CRON, cron_expression="* * * * * SUN", timezone="America/New_York"),
    Schedule(ScheduleType.INTERVAL, interval_seconds=0.1),
]


@pytest.mark.parametrize("schedule", DENSE, ids=["cron", "sundays", "interval"])
@pytest.mark.parametrize("policy", MisfirePolicy)
@pytest.mark.parametrize("rule", [None, *CalendarRule])
def test_a_year_s_outage_settles_within_50_milliseconds(
    schedule: Schedule, policy: MisfirePolicy, rule: CalendarRule | None
) -> None:
    schedule = replace(schedule, misfire_policy=policy, calendar="biz" if rule else None)
    calendar = Calendar("biz", rule or CalendarRule.SKIP, excluded_weekdays=frozenset({6, 7}))
    start = NOON - timedelta(days=365)
    known = ScheduleFacts(JOB, start, calendar)
    best = 1.0
    for _ in range(3):
        begin = time.process_time()
        settle(schedule, known, after=start, now=NOON)
        best = min(best, time.process_time() - begin)
    assert best < 0.05


@pytest.mark.parametrize(
    "policy",
    [
        {"misfire_policy": MisfirePolicy.SKIP},
        {"misfire_grace_seconds": 10.0},
        {"misfire_policy": MisfirePolicy.SKIP, "misfire_grace_seconds": 1.0},
    ],
    ids=str,
)
def test_what_starts_within_its_jitter_is_not_late(policy: dict[str, Any]) -> None:
    """Lateness begins where the window ends: who runs last in it is on time."""
    daily = Schedule(ScheduleType.CRON, cron_expression="0 12 * * *", jitter_seconds=300, **policy)
    for late_seconds in (0, 61, 299):
        now = NOON + timedelta(seconds=late_seconds)
        settled = settle(daily, facts(), after=NOON - timedelta(seconds=1), now=now)
        assert (settled.fires, settled.skips) == ((NOON,), ())
    too_late = NOON + timedelta(seconds=361)
    settled = settle(daily, facts(), after=NOON - timedelta(seconds=1), now=too_late)
    assert (settled.fires, settled.skips) == ((), (Skip(NOON, NOON, 1, MISFIRE),))


@pytest.mark.parametrize("jitter_seconds", [60, 3600, 86_400])
@pytest.mark.parametrize(
    ("policy", "fired"),
    [(MisfirePolicy.FIRE_ONCE, 1), (MisfirePolicy.FIRE_ALL, 3), (MisfirePolicy.SKIP, 2)],
)
def test_a_jitter_beyond_the_next_instant_switches_no_policy_off(
    jitter_seconds: float, policy: MisfirePolicy, fired: int
) -> None:
    """It ends at the next instant: that of minute 48 has been late since minute 49."""
    schedule = replace(
        MINUTELY, jitter_seconds=jitter_seconds, misfire_policy=policy, misfire_max_runs=3
    )
    settled = settle(schedule, facts(), after=NOON, now=at(50.98))
    assert settled.fires == tuple(at(minute) for minute in range(51 - fired, 51))
    assert settled.skips == (missed(1, 50 - fired, 50 - fired),)


@pytest.mark.parametrize(("late_seconds", "fires"), [(65, 2), (65.000001, 1)])
def test_a_window_that_is_cut_ends_at_the_next_instant(late_seconds: float, fires: int) -> None:
    schedule = replace(MINUTELY, jitter_seconds=3600)
    now = NOON + timedelta(seconds=late_seconds)
    settled = settle(schedule, facts(), after=NOON - timedelta(seconds=1), now=now)
    assert len(settled.fires) == fires


@pytest.mark.parametrize(("late_seconds", "fires"), [(90, 2), (90.000001, 1)])
def test_a_grace_begins_where_the_window_is_cut(late_seconds: float, fires: int) -> None:
    schedule = replace(
        MINUTELY,
        jitter_seconds=3600,
        misfire_grace_seconds=30,
        misfire_policy=MisfirePolicy.FIRE_ALL,
    )
    now = NOON + timedelta(seconds=late_seconds)
    settled = settle(schedule, facts(), after=NOON - timedelta(seconds=1), now=now)
    assert len(settled.fires) == fires


def test_a_paused_job_runs_nothing_of_its_window() -> None:
    """A grace below zero lets nothing run, whatever the jitter."""
    daily = Schedule(
        ScheduleType.CRON,
        cron_expression="0 12 * * *",
        jitter_seconds=300,
        misfire_grace_seconds=-1.0,
    )
    now = NOON + timedelta(seconds=10)
    settled = settle(daily, facts(), after=NOON - timedelta(seconds=1), now=now, cause=PAUSED)
    assert (settled.fires, settled.skips) == ((), (Skip(NOON, NOON, 1, PAUSED),))
