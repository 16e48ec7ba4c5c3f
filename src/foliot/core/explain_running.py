"""Where an execution is that somebody has in hand, and how one ended that is over."""

from datetime import timedelta
from typing import Final

from foliot.core.explanation import Code, Ending, Explanation, Facts, Keeper, Reason
from foliot.core.grace import EXPIRY_SECONDS
from foliot.core.model import Json
from foliot.core.reason_words import at, error_words, seconds_since, sentence, span
from foliot.core.states import ExecutionState, WorkerState

_BAD: Final = frozenset({ExecutionState.FAILED, ExecutionState.TIMED_OUT})


def explain_running(facts: Facts, worker: Keeper) -> Explanation:
    reason = _running(facts, worker) if worker.is_process else _handed_over(facts)
    return Explanation(facts.execution_id, facts.status, sentence(reason.message), (reason,))


def explain_end(ending: Ending) -> Explanation:
    told = f"it is over: {ending.status}"
    if ending.finished_at is not None:
        told += f" at {at(ending.finished_at)}"
    error = error_words(ending.error)
    if error:
        told += f", at attempt {ending.attempt_number}: {error}"
    if ending.dead_letter_id is not None:
        told += "; it is among the dead letters"
    again = "mend the cause, then ask for a new execution of the job"
    details = {
        "finished_at": ending.finished_at,
        "error": ending.error,
        "dead_letter_id": ending.dead_letter_id,
    }
    way_out = again if ending.status in _BAD else "there is nothing to wait for"
    reason = Reason(Code.FINISHED, told, way_out, None, details)
    return Explanation(ending.execution_id, ending.status, sentence(told), (reason,))


def _running(facts: Facts, worker: Keeper) -> Reason:
    told = f"it runs on worker {worker.name} {_under_way(facts)}"
    way_out = "wait for its end, or cancel it"
    silent = seconds_since(worker.last_heartbeat_at, facts.moment)
    is_dead = worker.status is WorkerState.DEAD
    if is_dead or silent > EXPIRY_SECONDS:
        told += "; the worker " + ("is dead" if is_dead else f"is silent for {span(silent)}")
        way_out = "wait: a scheduler takes it from the worker, and it runs elsewhere"
    details = _details(facts) | {"worker_id": worker.worker_id, "worker": worker.name}
    return Reason(Code.RUNNING, told, way_out, None, details)


def _handed_over(facts: Facts) -> Reason:
    """The time that its target has counts from the claim."""
    told = f"its target has taken it over and will tell its end: it runs {_under_way(facts)}"
    ends_at = (facts.claimed_at or facts.moment) + timedelta(seconds=facts.timeout_seconds)
    way_out = "wait for POST /complete or /fail from the target, or cancel it"
    return Reason(Code.HANDED_OVER, told, way_out, ends_at, _details(facts))


def _under_way(facts: Facts) -> str:
    since = at(facts.claimed_at or facts.moment)
    told = f"since {since}, attempt {facts.attempt_number} of {facts.max_attempts}"
    progress = facts.progress if isinstance(facts.progress, dict) else {}
    percent = progress.get("percent")
    if isinstance(percent, int | float):
        told += f", {percent:g} % done"
    if facts.cancel_requested_at is not None:
        told += f", asked to stop at {at(facts.cancel_requested_at)}"
    return told


def _details(facts: Facts) -> dict[str, Json]:
    return {
        "since": facts.claimed_at,
        "attempt_number": facts.attempt_number,
        "max_attempts": facts.max_attempts,
        "progress": facts.progress,
        "cancel_requested_at": facts.cancel_requested_at,
    }
