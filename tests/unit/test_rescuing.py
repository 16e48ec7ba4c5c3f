"""What becomes of executions that their workers lost: the table of cases."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.model import Backoff, ErrorType, RetryPolicy
from foliot.core.retry import DeadLetterReason as Reason
from foliot.core.states import ExecutionEvent as Event
from foliot.store.rescuing import Lost, judge_lost, judge_overdue, read_policy

LOST = Lost(
    execution_id=ExecutionId(uuid4()),
    fence=3,
    worker_id=WorkerId(uuid4()),
    claimed_at=datetime(2027, 3, 1, 12, tzinfo=UTC),
    attempt_number=1,
    crash_count=0,
    run_alone=False,
    started=True,
    cancel_requested=False,
    retry_policy=RetryPolicy(),
)


@pytest.mark.parametrize(
    ("facts", "event", "crashes", "letter"),
    [
        ({"started": False}, Event.HAND_BACK, None, None),
        ({}, Event.LOSE, 0, None),
        ({"crash_count": 1}, Event.LOSE, 1, None),
        ({"run_alone": True}, Event.LOSE, 1, None),
        ({"run_alone": True, "crash_count": 2}, Event.FAIL, None, Reason.POISON),
        ({"run_alone": True, "crash_count": 2, "started": False}, Event.HAND_BACK, None, None),
        ({"attempt_number": 4}, Event.LOSE, 0, None),
        ({"attempt_number": 4, "run_alone": True}, Event.FAIL, None, Reason.EXHAUSTED),
        ({"attempt_number": 4, "started": False}, Event.HAND_BACK, None, None),
        ({"attempt_number": 4, "cancel_requested": True}, Event.CANCEL, None, None),
    ],
)
def test_a_dead_worker_is_not_held_against_what_it_ran(
    facts: dict[str, int], event: Event, crashes: int | None, letter: Reason | None
) -> None:
    verdict = judge_lost(replace(LOST, **facts))  # type: ignore[arg-type]
    assert (verdict.event, verdict.crash_count, verdict.dead_letter) == (event, crashes, letter)
    assert verdict.failure.type is ErrorType.WORKER_LOST
    assert (verdict.execution_id, verdict.fence) == (LOST.execution_id, LOST.fence)
    assert verdict.worker_id == LOST.worker_id


@pytest.mark.parametrize(
    ("facts", "event", "delay", "letter"),
    [
        ({}, Event.RETRY, 1.0, None),
        ({"attempt_number": 3}, Event.RETRY, 4.0, None),
        ({"attempt_number": 4}, Event.TIME_OUT, 0.0, Reason.EXHAUSTED),
        ({"cancel_requested": True}, Event.CANCEL, 0.0, None),
    ],
)
def test_what_ran_on_too_long_is_retried_or_has_timed_out(
    facts: dict[str, int], event: Event, delay: float, letter: Reason | None
) -> None:
    verdict = judge_overdue(replace(LOST, **facts), 0.5)  # type: ignore[arg-type]
    assert (verdict.event, verdict.delay_seconds, verdict.dead_letter) == (event, delay, letter)
    assert verdict.crash_count is None


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        (None, RetryPolicy()),
        ("new", RetryPolicy()),
        ({"unheard_of": 1}, RetryPolicy()),
        ({"backoff": "NEW"}, RetryPolicy()),
        ({"max_attempts": 1, "backoff": "FIXED"}, RetryPolicy(1, Backoff.FIXED)),
    ],
)
def test_a_policy_that_cannot_be_read_is_the_default(written: object, policy: RetryPolicy) -> None:
    assert read_policy(written) == policy


def test_what_had_begun_is_said_to_have_begun_when_it_was_claimed() -> None:
    assert judge_lost(LOST).started_at == LOST.claimed_at
    assert judge_overdue(LOST, chance=0.5).started_at == LOST.claimed_at
    assert judge_lost(replace(LOST, started=False)).started_at is None
