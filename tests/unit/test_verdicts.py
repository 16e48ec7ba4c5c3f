"""How an attempt ended decides what is written: each end has one meaning."""

import dataclasses
from datetime import UTC, datetime
from uuid import UUID

import pytest
from msgspec.structs import replace

from foliot.core.ids import WorkerId
from foliot.core.model import (
    ErrorType,
    Failure,
    HttpTarget,
    TargetType,
)
from foliot.core.retry import DeadLetterReason
from foliot.core.states import ExecutionEvent
from foliot.store.claiming import ClaimedExecution
from foliot.store.finishing import Outcome
from foliot.store.handing_over import HandOver
from foliot.store.rescuing import Verdict
from foliot.testing.claimed import INSTRUCTIONS, a_claimed
from foliot.worker.tasks import (
    Cancelled,
    Crashed,
    Ended,
    Failed,
    HandedBack,
    HandedOver,
    Held,
    Snoozed,
    Succeeded,
)
from foliot.worker.verdicts import CANCELLED, Facts, judge, task_of

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
WORKER = WorkerId(UUID(int=7))
FACTS = Facts(WORKER, chance=0.5, started_at=NOON)
BROKEN = Failure(ErrorType.HANDLER_ERROR, "broken")
LATE = Failure(ErrorType.TIMEOUT, "too late")
DIED = Failure(ErrorType.WORKER_LOST, "killed by signal 11")
CLAIMED = a_claimed(scheduled_time=NOON, available_at=NOON, claimed_at=NOON)


def outcome(ended: Ended, claimed: ClaimedExecution = CLAIMED, facts: Facts = FACTS) -> Outcome:
    written = judge(claimed, ended, facts)
    assert isinstance(written, Outcome)
    assert (written.execution_id, written.fence) == (claimed.execution_id, claimed.fence)
    return written


def verdict(crashed: Crashed, claimed: ClaimedExecution = CLAIMED) -> Verdict:
    written = judge(claimed, crashed, FACTS)
    assert isinstance(written, Verdict)
    assert (written.execution_id, written.fence) == (claimed.execution_id, claimed.fence)
    assert written.worker_id == WORKER
    return written


def test_a_success_keeps_its_result() -> None:
    written = outcome(Succeeded({"answer": 42}))
    assert (written.event, written.result) == (ExecutionEvent.SUCCEED, {"answer": 42})
    assert written.started_at == NOON


def test_a_failure_is_tried_again_after_the_delay_of_its_policy() -> None:
    written = outcome(Failed(BROKEN))
    assert (written.event, written.failure) == (ExecutionEvent.RETRY, BROKEN)
    assert written.delay_seconds == 1.0
    assert written.dead_letter is None


def test_the_last_failure_goes_to_the_dead_letters() -> None:
    last = replace(CLAIMED, attempt_number=4)
    assert outcome(Failed(BROKEN), last).dead_letter is DeadLetterReason.EXHAUSTED
    assert outcome(Failed(BROKEN), last).event is ExecutionEvent.FAIL
    assert outcome(Failed(LATE), last).event is ExecutionEvent.TIME_OUT


def test_failures_that_come_too_fast_are_poison() -> None:
    written = outcome(Failed(BROKEN), facts=replace(FACTS, poisoned=True))
    assert (written.event, written.dead_letter) == (ExecutionEvent.FAIL, DeadLetterReason.POISON)


def test_a_snooze_costs_no_attempt_and_waits() -> None:
    written = outcome(Snoozed(90.0))
    assert (written.event, written.delay_seconds) == (ExecutionEvent.SNOOZE, 90.0)


@pytest.mark.parametrize(
    "ended", [Cancelled(), HandedBack("x"), Failed(BROKEN), Crashed(DIED, True)]
)
def test_what_was_to_be_cancelled_and_did_not_succeed_is_cancelled(ended: Ended) -> None:
    written = outcome(ended, facts=replace(FACTS, cancel_asked=True))
    assert (written.event, written.failure) == (ExecutionEvent.CANCEL, CANCELLED)


@pytest.mark.parametrize(
    "ended", [Cancelled(), HandedBack("x"), Failed(BROKEN), Crashed(DIED, True)]
)
def test_what_a_leaving_worker_stopped_goes_back_and_costs_nothing(ended: Ended) -> None:
    written = outcome(ended, facts=replace(FACTS, leaving=True, stopped=True))
    assert (written.event, written.failure) == (ExecutionEvent.HAND_BACK, None)
    assert written.started_at == NOON, "what began has met its start deadline"


def test_what_could_not_begin_is_not_offered_again_at_once() -> None:
    never_began = replace(FACTS, started_at=None)
    assert outcome(HandedBack("no process"), facts=never_began).delay_seconds == 1.0
    assert outcome(HandedBack("its host was killed")).delay_seconds == 0.0
    leaving = replace(never_began, leaving=True)
    assert outcome(HandedBack("closed"), facts=leaving).delay_seconds == 0.0


@pytest.mark.parametrize("ended", [Succeeded(1), Snoozed(5)])
def test_what_ended_by_itself_counts_although_the_worker_leaves(ended: Ended) -> None:
    written = outcome(ended, facts=replace(FACTS, leaving=True))
    assert written.event in (ExecutionEvent.SUCCEED, ExecutionEvent.SNOOZE)


def test_what_fails_by_itself_has_failed_although_the_worker_leaves() -> None:
    leaving = replace(FACTS, leaving=True)
    assert outcome(Failed(BROKEN), facts=leaving).event is ExecutionEvent.RETRY
    given_up = outcome(Failed(dataclasses.replace(BROKEN, do_not_retry=True)), facts=leaving)
    assert given_up.dead_letter is DeadLetterReason.NON_RETRYABLE
    assert isinstance(judge(CLAIMED, Crashed(DIED, alone=True), leaving), Verdict)


def test_a_shared_crash_is_held_against_nobody_and_the_next_run_is_alone() -> None:
    written = verdict(Crashed(DIED, alone=False), replace(CLAIMED, attempt_number=4))
    assert (written.event, written.crash_count) == (ExecutionEvent.LOSE, 0)
    assert written.failure == DIED


def test_a_crash_alone_counts_and_at_the_limit_it_is_poison() -> None:
    first = verdict(Crashed(DIED, alone=True))
    assert (first.event, first.crash_count) == (ExecutionEvent.LOSE, 1)
    assert first.started_at == NOON
    third = verdict(Crashed(DIED, alone=True), replace(CLAIMED, crash_count=2))
    assert (third.event, third.dead_letter) == (ExecutionEvent.FAIL, DeadLetterReason.POISON)
    assert third.started_at == NOON


def test_a_task_carries_what_a_handler_may_know() -> None:
    task = task_of(CLAIMED)
    assert task is not None
    assert (task.handler, task.payload, task.max_attempts) == ("work", {"n": 1}, 4)
    assert (task.timeout_seconds, task.cancel_grace_seconds) == (300.0, 30.0)
    assert (task.tags, task.labels, task.trigger) == (("a",), {"k": "v"}, "SCHEDULE")


def test_a_task_carries_where_a_call_goes() -> None:
    target = HttpTarget("https://example.org")
    task = task_of(replace(CLAIMED, instructions=dataclasses.replace(INSTRUCTIONS, target=target)))
    assert task is not None
    assert (task.target_type, task.http, task.handler) == (TargetType.HTTP, target, "")


def test_without_instructions_there_is_no_task() -> None:
    assert task_of(replace(CLAIMED, instructions=None)) is None


def test_what_a_target_takes_over_is_written_as_such_even_by_a_worker_that_leaves() -> None:
    for facts in (FACTS, replace(FACTS, leaving=True), replace(FACTS, cancel_asked=True)):
        written = judge(CLAIMED, HandedOver(), facts)
        assert written == HandOver(CLAIMED.execution_id, CLAIMED.fence)


def test_what_is_held_waits_in_words_and_keeps_its_start_deadline() -> None:
    written = outcome(Held(7.5, "nobody answers"))
    assert (written.event, written.delay_seconds) == (ExecutionEvent.HOLD, 7.5)
    assert written.failure is not None
    assert written.failure.message == "nobody answers"
    assert written.started_at is None
    leaving = outcome(Held(7.5, "nobody answers"), facts=replace(FACTS, leaving=True))
    assert leaving.event is ExecutionEvent.HAND_BACK


def test_what_the_other_side_said_is_kept_with_the_end() -> None:
    said = {"http_status": 503, "body_preview": "no"}
    assert outcome(Failed(BROKEN, said)).response == said
    assert outcome(Succeeded(1, response=said)).response == said
