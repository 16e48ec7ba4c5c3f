from datetime import UTC, datetime, timedelta

import pytest

from foliot.core.model import RetryPolicy
from foliot.core.poison import (
    CrashDecision,
    Death,
    QueueAgain,
    RunAlone,
    after_death,
    death_of,
    is_poisoned,
)
from foliot.core.retry import DeadLetterReason, GiveUp

NOW = datetime(2026, 5, 1, tzinfo=UTC)
POLICY = RetryPolicy(max_attempts=10)
POISON = GiveUp(DeadLetterReason.POISON)
EXHAUSTED = GiveUp(DeadLetterReason.EXHAUSTED)


@pytest.mark.parametrize(
    ("death", "crash_count", "decision"),
    [
        (Death.NOT_STARTED, 0, QueueAgain()),
        (Death.NOT_STARTED, 2, QueueAgain()),
        (Death.SHARED, 0, RunAlone(0)),
        (Death.SHARED, 2, RunAlone(2)),
        (Death.ALONE, 0, RunAlone(1)),
        (Death.ALONE, 1, RunAlone(2)),
        (Death.ALONE, 2, POISON),
        (Death.ALONE, 7, POISON),
    ],
)
def test_only_crashes_alone_count_toward_the_limit(
    death: Death, crash_count: int, decision: CrashDecision
) -> None:
    assert after_death(POLICY, 1, crash_count, death) == decision


def test_the_last_attempt_that_crashes_alone_ends_it() -> None:
    assert after_death(POLICY, 10, 0, Death.ALONE) == EXHAUSTED
    assert after_death(POLICY, 9, 0, Death.ALONE) == RunAlone(1)


@pytest.mark.parametrize("attempt_number", [1, 10, 11])
@pytest.mark.parametrize("crash_count", [0, 2, 3])
def test_what_had_not_begun_is_queued_again_and_its_attempt_given_back(
    attempt_number: int, crash_count: int
) -> None:
    decision = after_death(POLICY, attempt_number, crash_count, Death.NOT_STARTED)
    assert decision == QueueAgain(give_back=True)


@pytest.mark.parametrize("attempt_number", [1, 10, 11])
@pytest.mark.parametrize("crash_count", [0, 2, 3])
def test_a_shared_death_is_never_the_end(attempt_number: int, crash_count: int) -> None:
    decision = after_death(POLICY, attempt_number, crash_count, Death.SHARED)
    assert decision == RunAlone(crash_count)


@pytest.mark.parametrize("max_attempts", [1, 2, 5, 100])
def test_what_kills_every_process_ends_after_one_shared_death(max_attempts: int) -> None:
    policy = RetryPolicy(max_attempts=max_attempts)
    decision = after_death(policy, 1, 0, Death.SHARED)
    attempt_number = 1
    while isinstance(decision, RunAlone):
        attempt_number += 1
        decision = after_death(policy, attempt_number, decision.crash_count, Death.ALONE)
    assert isinstance(decision, GiveUp)
    assert attempt_number <= 1 + policy.max_crashes


def test_a_crash_that_is_both_the_last_attempt_and_the_limit_is_poison() -> None:
    assert after_death(POLICY, 10, 2, Death.ALONE) == POISON


def test_the_limit_is_the_jobs_own() -> None:
    assert after_death(RetryPolicy(max_crashes=1), 1, 0, Death.ALONE) == POISON


@pytest.mark.parametrize(
    ("window", "seconds_ago", "poisoned"),
    [
        (60.0, [40, 20, 0], True),
        (60.0, [60, 20, 0], False),
        (60.0, [59.9, 20, 0], True),
        (60.0, [20, 0], False),
        (60.0, [500, 400, 300, 0], False),
        (None, [2, 1, 0], False),
    ],
)
def test_three_failures_within_the_window_are_poison_where_the_job_asks(
    window: float | None, seconds_ago: list[float], poisoned: bool
) -> None:
    failed_at = [NOW - timedelta(seconds=each) for each in seconds_ago]
    assert is_poisoned(RetryPolicy(poison_window_seconds=window), failed_at, NOW) is poisoned


@pytest.mark.parametrize(
    ("said_begun", "run_alone", "fence", "death"),
    [
        (False, False, 1, Death.NOT_STARTED),
        (False, True, 5, Death.NOT_STARTED),
        (False, False, 6, Death.SHARED),
        (False, True, 6, Death.ALONE),
        (True, False, 1, Death.SHARED),
        (True, True, 1, Death.ALONE),
    ],
)
def test_what_was_claimed_five_times_without_an_attempt_counts_as_begun(
    said_begun: bool, run_alone: bool, fence: int, death: Death
) -> None:
    found = death_of(said_begun=said_begun, run_alone=run_alone, fence=fence, attempt_number=1)
    assert found is death
