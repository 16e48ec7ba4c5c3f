"""From how an attempt ended to what is written about it. Facts in, one decision out.

A failure is judged by the job's retry policy. A crash is judged by the rules of poison. What the
worker stopped for its own sake, because it leaves, goes back to the queue and costs no attempt.
"""

from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from foliot.core.ids import WorkerId
from foliot.core.model import (
    CommandTarget,
    ErrorType,
    Failure,
    HandlerTarget,
    HttpTarget,
    RetryPolicy,
)
from foliot.core.poison import Death, QueueAgain, after_death
from foliot.core.retry import GiveUp, Retry, decide, event_of, snooze
from foliot.core.states import ExecutionEvent
from foliot.store.claiming import ClaimedExecution, Instructions
from foliot.store.finishing import Outcome
from foliot.store.handing_over import HandOver
from foliot.store.rescuing import Verdict
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
    Task,
)

# What could not even begin (no process, no memory) is not offered again at once.
NO_PROCESS_SECONDS: Final = 1.0
CANCELLED: Final = Failure(ErrorType.CANCELLED, "cancelled on request")
UNREADABLE: Final = Failure(
    ErrorType.HANDLER_ERROR,
    "this worker cannot read the job's version (a newer Foliot wrote it, or it is gone)",
    do_not_retry=True,
)

# What is written about an attempt.
End = Outcome | Verdict | HandOver


class Facts(msgspec.Struct, frozen=True):
    """What, besides the end itself, decides what follows.

    `chance` in [0, 1) spreads retries. `leaving`: the worker begins nothing more. `stopped`: it has
    told this one to stop, for its own sake; what fails by itself has failed, leaving or not.
    """

    worker_id: WorkerId
    chance: float
    started_at: datetime | None = None
    cancel_asked: bool = False
    leaving: bool = False
    stopped: bool = False
    poisoned: bool = False


def task_of(claimed: ClaimedExecution) -> Task | None:
    """The attempt to make; None without instructions that can be followed here."""
    instructions = claimed.instructions
    if instructions is None:
        return None
    target = instructions.target
    return Task(
        execution_id=claimed.execution_id,
        fence=claimed.fence,
        attempt_number=claimed.attempt_number,
        max_attempts=instructions.retry_policy.max_attempts,
        tenant_id=claimed.tenant_id,
        job_id=claimed.job_id,
        job_name=claimed.job_name,
        handler=target.name if isinstance(target, HandlerTarget) else "",
        payload=claimed.payload,
        payload_is_jobs=claimed.payload_is_jobs,
        timeout_seconds=instructions.timeout_seconds,
        cancel_grace_seconds=instructions.cancel_grace_seconds,
        run_alone=claimed.run_alone,
        scheduled_time=claimed.scheduled_time,
        idempotency_key=claimed.idempotency_key,
        trigger=str(claimed.trigger),
        trace_id=claimed.trace_id,
        tags=claimed.tags,
        labels=claimed.labels,
        http=target if isinstance(target, HttpTarget) else None,
        command=target if isinstance(target, CommandTarget) else None,
    )


def judge(claimed: ClaimedExecution, ended: Ended, facts: Facts) -> End:
    """What becomes of the execution. A late success of what was to be cancelled is CANCELLED, by
    the statement that writes it. What was handed over stays as it is, in other hands."""
    match ended:
        case HandedOver():
            return HandOver(claimed.execution_id, claimed.fence)
        case Succeeded(result, is_marker, response):
            return Outcome(
                claimed.execution_id,
                claimed.fence,
                ExecutionEvent.SUCCEED,
                result=result,
                response=response,
                started_at=facts.started_at,
                result_truncated=is_marker,
            )
        case Snoozed(seconds):
            delay = snooze(seconds).delay_seconds
            return _outcome(claimed, facts, ExecutionEvent.SNOOZE, delay_seconds=delay)
        case _ if facts.cancel_asked:
            return _outcome(claimed, facts, ExecutionEvent.CANCEL, failure=CANCELLED)
        case HandedBack() if facts.started_at is None and not facts.leaving:
            return replace(hand_back(claimed), delay_seconds=NO_PROCESS_SECONDS)
        case HandedBack() | Cancelled():
            return hand_back(claimed, facts.started_at)
        case Held() if facts.leaving:
            return hand_back(claimed, facts.started_at)
        case _ if facts.stopped:
            return hand_back(claimed, facts.started_at)
        case Held(seconds, reason):
            why = Failure(ErrorType.CONNECTION, reason)
            outcome = _outcome(claimed, facts, ExecutionEvent.HOLD, failure=why)
            return replace(outcome, delay_seconds=seconds, started_at=None)
        case Failed(failure, response):
            return replace(_failed(claimed, failure, facts), response=response)
        case Crashed():
            return _crashed(claimed, ended, facts)


def hand_back(claimed: ClaimedExecution, started_at: datetime | None = None) -> Outcome:
    """As it was before the claim, but for the fence; what began has met its start deadline."""
    event = ExecutionEvent.HAND_BACK
    return Outcome(claimed.execution_id, claimed.fence, event, started_at=started_at)


def policy_of(instructions: Instructions | None) -> RetryPolicy:
    return RetryPolicy() if instructions is None else instructions.retry_policy


def _failed(claimed: ClaimedExecution, failure: Failure, facts: Facts) -> Outcome:
    decision = decide(
        policy_of(claimed.instructions),
        claimed.attempt_number,
        failure,
        chance=facts.chance,
        poisoned=facts.poisoned,
    )
    return Outcome(
        claimed.execution_id,
        claimed.fence,
        event_of(decision, failure),
        failure=failure,
        started_at=facts.started_at,
        delay_seconds=decision.delay_seconds if isinstance(decision, Retry) else 0.0,
        dead_letter=decision.reason if isinstance(decision, GiveUp) else None,
    )


def _crashed(claimed: ClaimedExecution, crashed: Crashed, facts: Facts) -> Verdict:
    death = Death.ALONE if crashed.alone else Death.SHARED
    decision = after_death(
        policy_of(claimed.instructions), claimed.attempt_number, claimed.crash_count, death
    )
    key = (claimed.execution_id, claimed.fence, facts.worker_id)
    if isinstance(decision, GiveUp):
        event, reason = ExecutionEvent.FAIL, decision.reason
        return Verdict(
            *key, event, crashed.failure, dead_letter=reason, started_at=facts.started_at
        )
    crash_count = None if isinstance(decision, QueueAgain) else decision.crash_count
    lose = ExecutionEvent.LOSE
    return Verdict(*key, lose, crashed.failure, crash_count, started_at=facts.started_at)


def _outcome(
    claimed: ClaimedExecution,
    facts: Facts,
    event: ExecutionEvent,
    *,
    failure: Failure | None = None,
    delay_seconds: float = 0.0,
) -> Outcome:
    return Outcome(
        claimed.execution_id,
        claimed.fence,
        event,
        failure=failure,
        started_at=facts.started_at,
        delay_seconds=delay_seconds,
    )
