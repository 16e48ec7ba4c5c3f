"""From when until when a version of a schedule owes outcomes, and what is due after that."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from foliot.core.ids import JobId, TenantId
from foliot.core.model import Schedule, ScheduleType
from foliot.core.schedule.occurrences import BEGINNING, ScheduleFacts
from foliot.core.schedule.stretches import (
    OVERDUE_AFTER,
    ScheduleVersion,
    Standing,
    Window,
    due,
    of_version,
    stretches,
)
from foliot.core.states import JobState

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
MINUTE, HOUR, TICK = timedelta(minutes=1), timedelta(hours=1), timedelta(microseconds=1)
JOB = JobId(UUID(int=7))
EVERY_MINUTE = Schedule(ScheduleType.INTERVAL, interval_seconds=60)
TWICE = replace(EVERY_MINUTE, max_runs=2)
ONCE = Schedule(ScheduleType.ONE_TIME, run_at=NOON + 9 * MINUTE)
ACTIVE = Standing(
    JOB,
    TenantId(UUID(int=1)),
    "job",
    JobState.ACTIVE,
    version=1,
    next_instant=NOON + 4 * MINUTE,
    next_run_at=NOON + 4 * MINUTE,
    last_instant=NOON + 3 * MINUTE,
    fired_count=3,
    updated_at=NOON,
)
OVER = replace(ACTIVE, status=JobState.COMPLETED, next_instant=None, next_run_at=None)


def version(
    schedule: Schedule,
    number: int = 1,
    at: datetime = NOON,
    *,
    settled: datetime | None = None,
    fired: int = 0,
) -> ScheduleVersion:
    """The `number`th schedule, brought by the version after ten others."""
    facts = ScheduleFacts(JOB, NOON, fired_count=fired)
    return ScheduleVersion(number * 10 - 9, number, schedule, facts, at, settled)


@pytest.mark.parametrize(
    ("standing", "schedule", "until"),
    [
        pytest.param(ACTIVE, EVERY_MINUTE, ACTIVE.next_instant, id="before its next instant"),
        pytest.param(
            replace(ACTIVE, status=JobState.PAUSED), EVERY_MINUTE, NOON + 4 * MINUTE, id="paused"
        ),
        pytest.param(OVER, EVERY_MINUTE, NOON + HOUR + TICK, id="over: all there is by now"),
        pytest.param(OVER, TWICE, NOON + 3 * MINUTE + TICK, id="over: it has fired often enough"),
        pytest.param(
            replace(OVER, status=JobState.DELETED, updated_at=NOON + 5 * MINUTE),
            EVERY_MINUTE,
            NOON + 5 * MINUTE + TICK,
            id="deleted",
        ),
        pytest.param(
            replace(OVER, status=JobState.DELETED, last_instant=NOON + MINUTE, updated_at=NOON),
            EVERY_MINUTE,
            NOON + MINUTE + TICK,
            id="deleted, and the clock was set back",
        ),
    ],
)
def test_the_last_stretch_ends_with_what_is_settled(
    standing: Standing, schedule: Schedule, until: datetime
) -> None:
    (part,) = stretches([version(schedule)], standing, NOON + HOUR)
    assert (part.after, part.until) == (BEGINNING, until - TICK)


@pytest.mark.parametrize(
    ("following", "after", "until"),
    [
        pytest.param(
            version(EVERY_MINUTE, 2, NOON + 2 * MINUTE, settled=NOON + MINUTE, fired=1),
            NOON + 2 * MINUTE,
            NOON + 2 * MINUTE,
            id="it begins where the one before it ends",
        ),
        pytest.param(
            version(ONCE, 2, NOON + 2 * MINUTE, settled=NOON + MINUTE, fired=1),
            NOON + MINUTE,
            NOON + 2 * MINUTE,
            id="a single instant may lie before the edit",
        ),
        pytest.param(
            version(ONCE, 2, NOON + 2 * MINUTE),
            BEGINNING,
            NOON + 2 * MINUTE,
            id="nothing was settled yet",
        ),
        pytest.param(
            version(EVERY_MINUTE, 2, NOON + 2 * MINUTE, settled=NOON + 3 * MINUTE, fired=3),
            NOON + 3 * MINUTE,
            NOON + 3 * MINUTE,
            id="the clock was set back",
        ),
    ],
)
def test_a_stretch_ends_with_the_next_version(
    following: ScheduleVersion, after: datetime, until: datetime
) -> None:
    first, second = stretches([version(EVERY_MINUTE), following], ACTIVE, NOON + HOUR)
    assert (first.until, second.after) == (until, after)


def test_a_job_that_had_fired_often_enough_owes_nothing_until_it_is_edited() -> None:
    following = version(EVERY_MINUTE, 2, NOON + HOUR, settled=NOON + 2 * MINUTE, fired=2)
    first, _ = stretches([version(TWICE), following], ACTIVE, NOON + HOUR)
    assert (first.until, first.count()) == (NOON + 2 * MINUTE, 2)


def test_a_version_belongs_to_the_stretch_that_it_came_in() -> None:
    versions = [version(EVERY_MINUTE, number) for number in (1, 2, 3)]
    parts = stretches(versions, ACTIVE, NOON)
    found = [of_version(parts, number) for number in (0, 1, 10, 11, 20, 99)]
    assert [part and part.schedule_version for part in found] == [None, 1, 1, 2, 2, 3]


def test_a_window_cuts_a_stretch() -> None:
    (part,) = stretches([version(EVERY_MINUTE)], ACTIVE, NOON + HOUR)
    assert part.count() == 3
    assert part.within(Window(NOON + 2 * MINUTE, NOON + HOUR)).count() == 2
    assert part.within(Window(NOON, NOON + 2 * MINUTE)).count() == 1
    assert part.within(Window(NOON + HOUR, NOON + 2 * HOUR)).count() == 0


@pytest.mark.parametrize(
    ("standing", "now", "count", "overdue"),
    [
        (ACTIVE, NOON + 4 * MINUTE, 1, False),
        (ACTIVE, NOON + 4 * MINUTE + OVERDUE_AFTER, 2, False),
        (ACTIVE, NOON + 4 * MINUTE + OVERDUE_AFTER + TICK, 2, True),
        (replace(ACTIVE, next_run_at=NOON + 5 * MINUTE), NOON + 6 * MINUTE, 3, False),
        (replace(ACTIVE, updated_at=NOON + HOUR), NOON + HOUR + MINUTE, 58, False),
        (replace(ACTIVE, status=JobState.PAUSED), NOON + HOUR, 57, False),
    ],
)
def test_what_is_not_settled_is_due_and_after_a_minute_overdue(
    standing: Standing, now: datetime, count: int, overdue: bool
) -> None:
    (part,) = stretches([version(EVERY_MINUTE)], standing, now)
    found = due(part, standing, now, Window(NOON, now + TICK))
    assert found is not None
    assert (found.first, found.count, found.overdue) == (NOON + 4 * MINUTE, count, overdue)
    assert found.last == found.first + (count - 1) * MINUTE


def test_nothing_is_due_before_its_time_or_of_a_job_that_is_over() -> None:
    for standing in (ACTIVE, OVER):
        (part,) = stretches([version(EVERY_MINUTE)], standing, NOON + 4 * MINUTE)
        assert due(part, standing, NOON, Window(NOON, NOON + 4 * MINUTE)) is None
