"""What is due soon, in memory: each job once, as it was told last, ready before its time."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from foliot.core.ids import JobId, TenantId, shard_of
from foliot.core.model import Schedule, ScheduleType
from foliot.core.schedule.occurrences import ScheduleFacts
from foliot.runtime.clock import SystemClock
from foliot.scheduler.staged import Entry, Staged
from foliot.store.staging import DueJob, settle_due

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EVERY_SECOND = Schedule(ScheduleType.INTERVAL, interval_seconds=1)


def due(
    number: int = 1, at: datetime = NOON, version: int = 1, schedule: Schedule = EVERY_SECOND
) -> DueJob:
    job_id = JobId(UUID(int=number))
    facts = ScheduleFacts(job_id, NOON - timedelta(hours=1))
    return DueJob(job_id, TenantId(UUID(int=0)), "default", at, at, version, schedule, facts)


def take(staged: Staged, now: datetime = NOON, limit: int = 100) -> list[DueJob]:
    return [entry.due for entry in staged.take_due(now, limit)]


@pytest.fixture
def staged() -> Staged:
    return Staged()


def test_jobs_come_out_when_they_are_due_soonest_first(staged: Staged) -> None:
    jobs = [due(number, NOON + number * SECOND) for number in (3, 1, 2, 4)]
    assert staged.offer(jobs, 0) == 4
    assert staged.next_due == NOON + SECOND
    assert take(staged, NOON + SECOND - timedelta(microseconds=1)) == []
    assert take(staged, NOON + 3 * SECOND, limit=2) == [jobs[1], jobs[2]]
    assert take(staged, NOON + 3 * SECOND) == [jobs[0]]
    assert (len(staged), staged.next_due) == (1, NOON + 4 * SECOND)


def test_a_job_that_is_told_twice_is_staged_once(staged: Staged) -> None:
    assert staged.offer([due(), due()], 0) == 1
    assert staged.offer([due()], 0) == 0
    assert take(staged) == [due()]
    assert take(staged) == []


@pytest.mark.parametrize(
    "edited",
    [
        due(at=NOON - SECOND),
        due(at=NOON + SECOND),
        due(version=2),
        replace(due(), queue="other"),
        replace(due(), next_run_at=NOON + SECOND),
    ],
)
def test_what_is_told_later_replaces_what_was_staged(staged: Staged, edited: DueJob) -> None:
    staged.offer([due()], 0)
    assert staged.offer([edited], 0) == 1
    assert staged.next_due == edited.next_run_at
    assert take(staged, NOON + 2 * SECOND) == [edited]


def test_a_job_on_its_way_to_the_database_is_not_staged_again(staged: Staged) -> None:
    staged.offer([due()], 0)
    staged.take_due(NOON, 1)
    assert staged.offer([due(), due(at=NOON + SECOND)], 0) == 0
    assert len(staged) == 0


def test_a_job_that_was_passed_over_can_be_staged_again(staged: Staged) -> None:
    staged.offer([due()], 0)
    staged.land(staged.take_due(NOON, 1), [])
    assert staged.offer([due()], staged.turn) == 1


def test_an_answer_from_before_a_fire_does_not_undo_what_followed(staged: Staged) -> None:
    staged.offer([due()], 0)
    asked_at = staged.turn
    following = due(at=NOON + SECOND)
    staged.land(staged.take_due(NOON, 1), [following])
    assert staged.offer([due()], asked_at) == 0
    assert staged.offer([due(at=NOON + timedelta(milliseconds=5), version=2)], staged.turn) == 1


def test_without_an_answer_everything_is_as_it_was(staged: Staged) -> None:
    staged.offer([due(1), due(2)], 0)
    staged.put_back(staged.take_due(NOON, 2))
    assert {job.job_id for job in take(staged)} == {due(1).job_id, due(2).job_id}


def test_jobs_of_other_shards_are_forgotten(staged: Staged) -> None:
    jobs = [due(number, NOON + number * SECOND) for number in range(1, 200)]
    staged.offer(jobs, 0)
    staged.keep(range(10))
    kept = [job for job in jobs if shard_of(job.job_id) < 10]
    assert 0 < len(kept) < 199
    assert len(staged) == len(kept)
    assert take(staged, NOON + 300 * SECOND, 1000) == kept


async def hinted(staged: Staged) -> bool:
    """Whether whoever waits for something earlier need not wait."""
    waiting = asyncio.create_task(staged.earlier.wait(60, SystemClock()))
    for _ in range(10):
        await asyncio.sleep(0)
    woken = waiting.done()
    waiting.cancel()
    await asyncio.wait({waiting})
    return woken


async def test_whoever_waits_is_told_of_something_earlier(staged: Staged) -> None:
    assert not await hinted(staged)
    staged.offer([due(1)], 0)
    assert await hinted(staged)
    staged.offer([due(2, NOON + SECOND)], 0)
    assert not await hinted(staged)
    staged.offer([due(3, NOON - SECOND)], 0)
    assert await hinted(staged)


SCHEDULES = [
    EVERY_SECOND,
    Schedule(ScheduleType.INTERVAL, interval_seconds=0.1),
    Schedule(ScheduleType.INTERVAL, interval_seconds=60),
    Schedule(ScheduleType.INTERVAL, interval_seconds=60, misfire_grace_seconds=1),
    Schedule(ScheduleType.INTERVAL, interval_seconds=60, max_runs=1),
    Schedule(ScheduleType.INTERVAL, interval_seconds=60, jitter_seconds=30),
    Schedule(ScheduleType.INTERVAL, interval_seconds=1, jitter_seconds=3600),
    Schedule(
        ScheduleType.INTERVAL, interval_seconds=2, jitter_seconds=3600, misfire_grace_seconds=1
    ),
    Schedule(ScheduleType.ONE_TIME, run_at=NOON),
    Schedule(ScheduleType.ONE_TIME, run_at=NOON, misfire_grace_seconds=2),
    Schedule(ScheduleType.CRON, cron_expression="* * * * *"),
]
LATENESS = [0.0, 0.05, 0.1, 0.99, 1.0, 1.5, 2.0, 2.5, 4.99, 5.0, 5.01, 59.9, 60.0, 120.0]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("late", LATENESS)
def test_what_was_made_ready_is_what_would_be_settled_now(schedule: Schedule, late: float) -> None:
    entry = Entry(due(schedule=schedule))
    now = NOON + timedelta(seconds=late)
    entry.prepare()
    assert entry.settle(now) == settle_due(entry.due, now)


@pytest.mark.parametrize(("jitter_seconds", "held_seconds"), [(0, 2), (30, 32), (3600, 62)])
def test_a_grace_is_over_so_long_after_the_window_as_it_is_cut(
    jitter_seconds: float, held_seconds: float
) -> None:
    minutely = Schedule(
        ScheduleType.INTERVAL,
        interval_seconds=60,
        jitter_seconds=jitter_seconds,
        misfire_grace_seconds=2,
    )
    fire = settle_due(due(schedule=minutely), NOON)
    assert fire is not None
    assert fire.holds_until == NOON + held_seconds * SECOND


def test_what_is_on_time_has_been_made_ready(staged: Staged) -> None:
    staged.offer([due(number) for number in range(5)], 0)
    assert staged.prepare(3)
    assert not staged.prepare(3)
    entries = staged.take_due(NOON, 5)
    assert all(entry.settle(NOON) is entry.ready is not None for entry in entries)


def test_a_job_that_cannot_be_settled_keeps_no_other_from_being_ready(staged: Staged) -> None:
    broken = Schedule(ScheduleType.INTERVAL, interval_seconds=1, calendar="gone")
    staged.offer([due(1, schedule=broken), due(2)], 0)
    assert not staged.prepare(10)
    ready: Sequence[bool] = [entry.ready is not None for entry in staged.take_due(NOON, 2)]
    assert ready == [False, True]


def test_those_that_are_late_are_counted_and_no_others(staged: Staged) -> None:
    staged.offer([due(number, NOON + number * SECOND) for number in range(50)], 0)
    staged.offer([due(3, NOON + 99 * SECOND)], 1)
    assert [staged.count_due(NOON + late * SECOND) for late in (0, 1, 10, 200)] == [0, 1, 9, 50]
