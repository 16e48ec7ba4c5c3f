"""What a worker counts about its attempts.

A counter with a label costs ten times as much to look up as to raise: those of a queue are looked
up once.
"""

from dataclasses import dataclass
from functools import lru_cache

from prometheus_client import Counter

from foliot.core.model import ErrorType
from foliot.core.states import ExecutionEvent, ExecutionState
from foliot.runtime.metrics import (
    DEAD_LETTERS,
    EXECUTION_DURATION,
    EXECUTIONS_FINISHED,
    EXECUTIONS_STARTED,
    EXECUTIONS_SUPERSEDED,
    RETRIES,
    START_DELAY,
    TIMEOUTS,
)
from foliot.runtime.tallies import Tally
from foliot.store.handing_over import HandOver
from foliot.worker.hand import Grip
from foliot.worker.tasks import Ended, Failed
from foliot.worker.verdicts import End


@dataclass(frozen=True, slots=True)
class _OfQueue:
    started: Counter
    start_delay: Tally
    duration: Tally


@lru_cache(maxsize=1024)
def _of(queue: str) -> _OfQueue:
    return _OfQueue(
        EXECUTIONS_STARTED.labels(queue),
        START_DELAY.of(queue),
        EXECUTION_DURATION.of(queue),
    )


@lru_cache(maxsize=1024)
def _finished(queue: str, state: ExecutionState) -> Counter:
    return EXECUTIONS_FINISHED.labels(queue, str(state))


def begun(grip: Grip) -> None:
    counters, claimed = _of(grip.claimed.queue), grip.claimed
    counters.started.inc()
    if grip.begun_at is not None:
        waited = (claimed.claimed_at - claimed.available_at).total_seconds()
        counters.start_delay.observe(waited + grip.begun_at - grip.taken_at)


def ended(grip: Grip, how: Ended, now: float) -> None:
    if grip.begun_at is not None:
        _of(grip.claimed.queue).duration.observe(now - grip.begun_at)
    if isinstance(how, Failed) and how.failure.type is ErrorType.TIMEOUT:
        TIMEOUTS.labels(grip.claimed.queue).inc()


def written(grip: Grip | None, end: End, state: ExecutionState | None) -> None:
    """`state` is the execution's new one; None where what we had to say came too late."""
    if state is None:
        EXECUTIONS_SUPERSEDED.inc()
        return
    if isinstance(end, HandOver):  # it is not over
        return
    queue = grip.claimed.queue if grip is not None else "unknown"
    _finished(queue, state).inc()
    if end.event is ExecutionEvent.RETRY and state is ExecutionState.RETRYING:
        RETRIES.labels(queue).inc()
    if end.dead_letter is not None and state is not ExecutionState.CANCELLED:
        DEAD_LETTERS.labels(queue, str(end.dead_letter)).inc()
