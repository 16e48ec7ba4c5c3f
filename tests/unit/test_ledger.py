"""What is said of the outcomes of a job: nothing if each instant has one, else what is wrong."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest

from foliot.core.ids import EPOCH, JobId, TenantId
from foliot.core.model import After, DstGap, Schedule, ScheduleType, SkipReason
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.ledger import (
    PROBLEMS_KEPT,
    Account,
    JobLedger,
    ProblemKind,
    Report,
    unreadable,
)
from foliot.core.schedule.occurrences import ScheduleFacts
from foliot.core.schedule.stretches import ScheduleVersion, Standing, Window, stretches
from foliot.core.schedule.timeline import Skip
from foliot.core.states import JobState

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
JOB = JobId(UUID(int=7))
MISSING, DOUBLED = ProblemKind.MISSING, ProblemKind.DOUBLED
UNEXPECTED, MISCOUNTED = ProblemKind.UNEXPECTED, ProblemKind.MISCOUNTED
EVERY_MINUTE = Schedule(ScheduleType.INTERVAL, interval_seconds=60)
DAILY = Schedule(ScheduleType.CRON, cron_expression="30 2 * * *", timezone="Europe/Berlin")
NO_TUESDAYS = Calendar("closed", excluded_weekdays=frozenset({2}))
# Five minutes old; the instant at five minutes is the next.
STANDING = Standing(
    JOB,
    TenantId(UUID(int=1)),
    "job",
    JobState.ACTIVE,
    version=3,
    next_instant=NOON + 5 * MINUTE,
    next_run_at=NOON + 5 * MINUTE,
    last_instant=NOON + 4 * MINUTE,
    fired_count=4,
    updated_at=NOON,
)
Fires = Sequence[tuple[int, datetime]]
Skips = Sequence[tuple[int, Skip]]


def at(minute: float) -> datetime:
    return NOON + minute * MINUTE


def skip(first: float, last: float, count: int, reason: SkipReason = SkipReason.MISFIRE) -> Skip:
    return Skip(at(first), at(last), count, reason)


def judge(
    fires: Fires,
    skips: Skips = (),
    schedule: Schedule = EVERY_MINUTE,
    standing: Standing = STANDING,
    calendar: Calendar | None = None,
    later: timedelta = -MINUTE / 2,
) -> JobLedger:
    now = (standing.next_instant or NOON + DAY) + later
    facts = ScheduleFacts(JOB, NOON, calendar)
    parts = stretches([ScheduleVersion(1, 1, schedule, facts, NOON, None)], standing, now)
    account = Account(standing, parts, Window(EPOCH, now), now)
    for version, instant in fires:
        account.add_fire(version, instant)
    for number, each in skips:
        account.add_skip(number, each)
    return account.close()


ALL = [(1, at(n)) for n in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("fires", "skips", "counts"),
    [
        (ALL, [], (4, 4, 0)),
        (ALL[::-1], [], (4, 4, 0)),
        ([(1, at(1)), (3, at(2)), (2, at(3)), (3, at(4))], [], (4, 4, 0)),
        ([], [(1, skip(1, 4, 4))], (4, 0, 4)),
        ([(1, at(4))], [(1, skip(1, 2, 2)), (1, skip(3, 3, 1, SkipReason.OVERLAP))], (4, 1, 3)),
    ],
)
def test_the_ledger_holds_where_each_instant_has_one_outcome(
    fires: Fires, skips: Skips, counts: tuple[int, int, int]
) -> None:
    found = judge(fires, skips)
    assert found.holds
    assert found.problems == ()
    assert (found.expected, found.fired, found.skipped) == counts


@pytest.mark.parametrize(
    ("fires", "skips", "named"),
    [
        pytest.param(ALL[1:], [], [(MISSING, 1, 1, 1)], id="the first is missing"),
        pytest.param(ALL[:1], [], [(MISSING, 2, 4, 3)], id="the last three are missing"),
        pytest.param(
            ALL[1:3], [], [(MISSING, 1, 1, 1), (MISSING, 4, 4, 1)], id="missing at both ends"
        ),
        pytest.param([*ALL, (1, at(2))], [], [(DOUBLED, 2, 2, 1)], id="fired twice"),
        pytest.param(ALL, [(1, skip(2, 3, 2))], [(DOUBLED, 2, 3, 2)], id="fired and skipped"),
        pytest.param(
            [],
            [(1, skip(1, 4, 4)), (1, skip(3, 3, 1, SkipReason.PAUSED))],
            [(DOUBLED, 3, 3, 1)],
            id="skipped twice",
        ),
        pytest.param([*ALL, (1, at(2.5))], [], [(UNEXPECTED, 2.5, 2.5, 1)], id="no instant"),
        pytest.param([*ALL, (1, at(0))], [], [(UNEXPECTED, 0, 0, 1)], id="before it was made"),
        pytest.param([*ALL, (0, at(2.5))], [], [(UNEXPECTED, 2.5, 2.5, 1)], id="no such version"),
        pytest.param(ALL, [(0, skip(2, 3, 2))], [(UNEXPECTED, 2, 3, 2)], id="no such schedule"),
        pytest.param(
            ALL, [(1, skip(2.5, 3, 1))], [(UNEXPECTED, 2.5, 3, 1)], id="a skip of no instant"
        ),
        pytest.param(
            ALL[:1], [(1, skip(2, 4, 2))], [(MISCOUNTED, 2, 4, 2)], id="a skip that says too few"
        ),
    ],
)
def test_what_is_wrong_is_named(
    fires: Fires, skips: Skips, named: list[tuple[ProblemKind, float, float, int]]
) -> None:
    found = judge(fires, skips)
    assert [(each.kind, each.from_, each.to, each.count) for each in found.problems] == [
        (kind, at(first), at(last), count) for kind, first, last, count in named
    ]
    assert found.found.keys() == {kind for kind, *_ in named}
    assert not found.holds


def test_what_came_after_the_look_at_the_job_is_not_judged() -> None:
    later = [(4, at(2.5)), (1, at(5)), (3, at(6))]
    skips = [(1, skip(5, 7, 3)), (2, skip(2, 3, 2))]
    found = judge([*ALL, *later], skips, later=MINUTE)
    assert (found.expected, found.due, found.problems) == (4, 1, ())


def test_an_excluded_day_is_skipped_and_must_not_run() -> None:
    schedule = replace(DAILY, timezone="UTC", calendar="closed")
    two_thirty = datetime(2027, 3, 2, 2, 30, tzinfo=UTC)  # on a Tuesday
    standing = replace(STANDING, next_instant=two_thirty + 2 * DAY)
    held = Skip(two_thirty, two_thirty, 1, SkipReason.CALENDAR)
    fires = [(1, two_thirty + DAY)]
    right = judge(fires, [(1, held)], schedule, standing, NO_TUESDAYS)
    assert (right.fired, right.skipped, right.problems) == (1, 1, ())
    (wrong,) = judge(
        [*fires, (1, two_thirty)], [(1, held)], schedule, standing, NO_TUESDAYS
    ).problems
    assert (wrong.kind, wrong.from_) == (UNEXPECTED, two_thirty)
    assert wrong.why == "an execution of version 1: 2027-03-02 is excluded by calendar closed"
    both = Skip(two_thirty, two_thirty + DAY, 2, SkipReason.CALENDAR)
    (wrong,) = judge([], [(1, both)], schedule, standing, NO_TUESDAYS).problems
    assert (wrong.kind, wrong.why) == (
        MISCOUNTED,
        "the record says CALENDAR for 2; that is so for 1",
    )


def test_a_local_time_that_does_not_exist_is_on_record() -> None:
    end_of_gap = datetime(2027, 3, 28, 1, tzinfo=UTC)
    schedule = replace(DAILY, dst_gap=DstGap.SKIP, start_at=end_of_gap)
    standing = replace(STANDING, next_instant=end_of_gap + DAY - 30 * MINUTE)
    record = Skip(end_of_gap, end_of_gap, 1, SkipReason.DST_GAP)
    found = judge([], [(1, record)], schedule, standing)
    assert (found.expected, found.skipped, found.problems) == (1, 1, ())
    (wrong,) = judge([(1, end_of_gap)], [(1, record)], schedule, standing).problems
    assert (wrong.kind, wrong.from_) == (UNEXPECTED, end_of_gap)


@pytest.mark.parametrize(
    ("schedule", "fires", "expected"),
    [
        (Schedule(ScheduleType.IMMEDIATE), [NOON], 1),
        (Schedule(ScheduleType.DELAYED, delay_seconds=1.5), [NOON + timedelta(seconds=1.5)], 1),
        (Schedule(ScheduleType.ONE_TIME, run_at=NOON - DAY), [NOON - DAY], 1),
        (Schedule(ScheduleType.MANUAL), [], 0),
        (replace(EVERY_MINUTE, end_at=at(3)), [at(1), at(2)], 2),
        (replace(EVERY_MINUTE, start_at=at(3), end_at=at(5)), [at(3), at(4)], 2),
        (replace(EVERY_MINUTE, max_runs=4), [at(1), at(2), at(3), at(4)], 4),
    ],
)
def test_a_job_that_is_over_had_all_its_instants(
    schedule: Schedule, fires: list[datetime], expected: int
) -> None:
    over = replace(STANDING, status=JobState.COMPLETED, next_instant=None, next_run_at=None)
    found = judge([(1, instant) for instant in fires], (), schedule, over)
    assert (found.expected, found.fired, found.problems) == (expected, expected, ())
    extra = judge([(1, instant) for instant in [*fires, at(9.5)]], (), schedule, over)
    assert extra.found == {UNEXPECTED: 1}


def test_the_skips_of_a_job_that_follows_others_have_no_instants() -> None:
    schedule = Schedule(ScheduleType.AFTER, after=After((JobId(UUID(int=8)),)))
    standing = replace(STANDING, next_instant=None, next_run_at=None)
    found = judge([], [(1, skip(2.5, 2.5, 1, SkipReason.OVERLAP))], schedule, standing)
    assert (found.expected, found.problems) == (0, ())


def test_all_problems_are_counted_and_the_first_are_kept() -> None:
    standing = replace(STANDING, next_instant=NOON + DAY)
    found = judge([(1, at(n)) for n in range(2, 1440, 2)], (), EVERY_MINUTE, standing)
    assert found.found == {MISSING: 720}
    assert len(found.problems) == PROBLEMS_KEPT
    report = Report(kept=101)
    for _ in range(2):
        report.add(found)
    report.add(judge(ALL))
    assert (report.jobs, report.bad_jobs, report.found) == (3, 2, {MISSING: 1440})
    assert (len(report.named), report.truncated, report.holds) == (101, True, False)
    assert report.expected == report.fired + report.skipped + 1440


def test_a_year_of_skipped_seconds_is_counted_without_counting() -> None:
    second = Schedule(ScheduleType.CRON, cron_expression="* * * * * *")
    standing = replace(STANDING, next_instant=NOON + 365 * DAY)
    record = Skip(
        NOON + timedelta(seconds=1),
        NOON + 365 * DAY - timedelta(seconds=1),
        365 * 86_400 - 1,
        SkipReason.PAUSED,
    )
    found = judge([], [(1, record)], second, standing)
    assert found.expected == found.skipped == record.count - 30  # half a minute is not looked at
    assert found.problems == ()


def test_a_schedule_that_cannot_be_read_is_told() -> None:
    found = unreadable(STANDING, ValueError("what is this?"))
    assert found.found == {ProblemKind.UNREADABLE: 1}
    assert found.problems[0].why == "its schedule cannot be read: what is this?"


def test_a_move_to_another_day_is_expected_there() -> None:
    calendar = replace(NO_TUESDAYS, excluded_dates=frozenset({date(2027, 3, 3)}))
    schedule = replace(DAILY, timezone="UTC", calendar="closed")
    thursday = datetime(2027, 3, 4, 2, 30, tzinfo=UTC)
    standing = replace(STANDING, next_instant=thursday + DAY)
    held = Skip(thursday - 2 * DAY, thursday - DAY, 2, SkipReason.CALENDAR)
    found = judge([(1, thursday)], [(1, held)], schedule, standing, calendar)
    assert (found.expected, found.problems) == (3, ())
