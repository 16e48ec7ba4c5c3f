"""Jitter moves when an execution may start, never its instant."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from foliot.core.ids import JobId
from foliot.core.model import Schedule, ScheduleType
from foliot.core.schedule.jitter import available_at

JOB = JobId(UUID(int=1))
NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


def hourly(jitter_seconds: float) -> Schedule:
    return Schedule(ScheduleType.INTERVAL, interval_seconds=3600, jitter_seconds=jitter_seconds)


def test_without_jitter_an_execution_is_available_at_its_instant() -> None:
    assert available_at(hourly(0), JOB, NOON, None) == NOON


def test_the_shift_is_the_same_in_every_release() -> None:
    """Nodes of two releases side by side must agree."""
    assert available_at(hourly(300), JOB, NOON, None) == NOON + timedelta(microseconds=90_886_608)


def test_jobs_and_instants_are_spread() -> None:
    shifts = {available_at(hourly(300), JobId(UUID(int=n)), NOON, None) for n in range(100)}
    days = {available_at(hourly(300), JOB, NOON + timedelta(days=n), None) for n in range(100)}
    assert len(shifts) == 100
    assert len({at.time() for at in days}) == 100


def test_the_window_is_used_evenly() -> None:
    quarters = [0] * 4
    for number in range(2000):
        shift = available_at(hourly(100), JobId(UUID(int=number)), NOON, None) - NOON
        quarters[int(shift / timedelta(seconds=25))] += 1
    assert all(400 < quarter < 600 for quarter in quarters)


def test_the_shift_stays_shorter_than_the_way_to_the_next_instant() -> None:
    following = NOON + timedelta(microseconds=2)
    shifts = {available_at(hourly(300), JobId(UUID(int=n)), NOON, following) for n in range(50)}
    assert shifts == {NOON, NOON + timedelta(microseconds=1)}
