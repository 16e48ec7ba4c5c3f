"""States move through these tables and nowhere else.

The SQL headers (`-- transition:`) and the diagrams in docs/reference/states.md are checked against
them. `advance` is total: it returns the next state or raises `IllegalTransition`.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from foliot.core.errors import IllegalTransition


class ExecutionState(StrEnum):
    PENDING = "PENDING"  # its time has not come
    WAITING = "WAITING"  # held by a limit, a parent or a signal
    QUEUED = "QUEUED"  # claimable
    RUNNING = "RUNNING"  # claimed
    RETRYING = "RETRYING"  # in backoff
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"  # the last attempt did
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"
    UPSTREAM_FAILED = "UPSTREAM_FAILED"  # only a task of a dag run


class ExecutionEvent(StrEnum):
    RELEASE = "RELEASE"  # time has come, or the limit, parent or signal lets go
    HOLD = "HOLD"  # a limit, breaker or pause keeps it; costs no attempt
    CLAIM = "CLAIM"  # a worker takes it: fence and attempt_number rise
    SUCCEED = "SUCCEED"
    RETRY = "RETRY"  # this attempt failed, another is due
    FAIL = "FAIL"  # the last attempt failed, or no other may follow
    TIME_OUT = "TIME_OUT"  # the last attempt ran out of time
    SNOOZE = "SNOOZE"  # the handler asks for later; the attempt is given back
    HAND_BACK = "HAND_BACK"  # a draining worker returns it; the attempt is given back
    HAND_OVER = "HAND_OVER"  # the called side works on and will tell the end itself
    LOSE = "LOSE"  # its worker died; the attempt stays counted
    CANCEL = "CANCEL"  # carried out; while running, a request only sets cancel_requested_at
    EXPIRE = "EXPIRE"  # not started before its start deadline
    SKIP = "SKIP"  # a condition, an overlap or an operator says no
    FAIL_UPSTREAM = "FAIL_UPSTREAM"  # a parent task failed, so this one never runs


class JobState(StrEnum):
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"  # no instant left
    DELETED = "DELETED"


class JobEvent(StrEnum):
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    EXHAUST = "EXHAUST"  # the last instant is settled
    RESCHEDULE = "RESCHEDULE"  # an edit gives it instants again
    DELETE = "DELETE"


class WorkerState(StrEnum):
    ACTIVE = "ACTIVE"
    DRAINING = "DRAINING"
    DEAD = "DEAD"


class WorkerEvent(StrEnum):
    DRAIN = "DRAIN"
    DIE = "DIE"  # stopped, or silent for longer than its lease


class DagRunState(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class DagRunEvent(StrEnum):
    START = "START"
    SUCCEED = "SUCCEED"
    FAIL = "FAIL"
    CANCEL = "CANCEL"


State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)

_S, _E = ExecutionState, ExecutionEvent
EXECUTION: Final[Mapping[tuple[ExecutionState, ExecutionEvent], ExecutionState]] = MappingProxyType(
    {
        (_S.PENDING, _E.RELEASE): _S.QUEUED,
        (_S.PENDING, _E.HOLD): _S.WAITING,
        (_S.PENDING, _E.CANCEL): _S.CANCELLED,
        (_S.PENDING, _E.EXPIRE): _S.FAILED,
        (_S.PENDING, _E.SKIP): _S.SKIPPED,
        (_S.WAITING, _E.RELEASE): _S.QUEUED,
        (_S.WAITING, _E.SUCCEED): _S.SUCCEEDED,  # a task that waits for an event gets it
        (_S.WAITING, _E.TIME_OUT): _S.TIMED_OUT,  # or does not get it in time
        (_S.WAITING, _E.FAIL): _S.FAILED,  # its condition or inputs cannot be evaluated
        (_S.WAITING, _E.CANCEL): _S.CANCELLED,
        (_S.WAITING, _E.EXPIRE): _S.FAILED,
        (_S.WAITING, _E.SKIP): _S.SKIPPED,
        (_S.WAITING, _E.FAIL_UPSTREAM): _S.UPSTREAM_FAILED,
        (_S.QUEUED, _E.CLAIM): _S.RUNNING,
        (_S.QUEUED, _E.HOLD): _S.WAITING,
        (_S.QUEUED, _E.CANCEL): _S.CANCELLED,
        (_S.QUEUED, _E.EXPIRE): _S.FAILED,
        (_S.QUEUED, _E.SKIP): _S.SKIPPED,
        (_S.RUNNING, _E.SUCCEED): _S.SUCCEEDED,
        (_S.RUNNING, _E.RETRY): _S.RETRYING,
        (_S.RUNNING, _E.FAIL): _S.FAILED,
        (_S.RUNNING, _E.TIME_OUT): _S.TIMED_OUT,
        (_S.RUNNING, _E.SNOOZE): _S.PENDING,
        (_S.RUNNING, _E.HAND_BACK): _S.QUEUED,
        (_S.RUNNING, _E.HOLD): _S.WAITING,  # an open breaker, found after the claim
        (_S.RUNNING, _E.HAND_OVER): _S.RUNNING,  # the other side goes on with it
        (_S.RUNNING, _E.LOSE): _S.QUEUED,
        (_S.RUNNING, _E.CANCEL): _S.CANCELLED,
        (_S.RUNNING, _E.SKIP): _S.SKIPPED,  # every instance of a fan-out was
        (_S.RETRYING, _E.RELEASE): _S.QUEUED,
        (_S.RETRYING, _E.HOLD): _S.WAITING,
        (_S.RETRYING, _E.CANCEL): _S.CANCELLED,
        (_S.RETRYING, _E.EXPIRE): _S.FAILED,
    }
)

JOB: Final[Mapping[tuple[JobState, JobEvent], JobState]] = MappingProxyType(
    {
        (JobState.ACTIVE, JobEvent.PAUSE): JobState.PAUSED,
        (JobState.ACTIVE, JobEvent.EXHAUST): JobState.COMPLETED,
        (JobState.ACTIVE, JobEvent.DELETE): JobState.DELETED,
        (JobState.PAUSED, JobEvent.RESUME): JobState.ACTIVE,
        (JobState.PAUSED, JobEvent.DELETE): JobState.DELETED,
        (JobState.COMPLETED, JobEvent.RESCHEDULE): JobState.ACTIVE,
        (JobState.COMPLETED, JobEvent.DELETE): JobState.DELETED,
    }
)

WORKER: Final[Mapping[tuple[WorkerState, WorkerEvent], WorkerState]] = MappingProxyType(
    {
        (WorkerState.ACTIVE, WorkerEvent.DRAIN): WorkerState.DRAINING,
        (WorkerState.ACTIVE, WorkerEvent.DIE): WorkerState.DEAD,
        (WorkerState.DRAINING, WorkerEvent.DIE): WorkerState.DEAD,
    }
)

DAG_RUN: Final[Mapping[tuple[DagRunState, DagRunEvent], DagRunState]] = MappingProxyType(
    {
        (DagRunState.PENDING, DagRunEvent.START): DagRunState.RUNNING,
        (DagRunState.PENDING, DagRunEvent.CANCEL): DagRunState.CANCELLED,
        (DagRunState.RUNNING, DagRunEvent.SUCCEED): DagRunState.SUCCEEDED,
        (DagRunState.RUNNING, DagRunEvent.FAIL): DagRunState.FAILED,
        (DagRunState.RUNNING, DagRunEvent.CANCEL): DagRunState.CANCELLED,
    }
)

TERMINAL: Final = frozenset(ExecutionState) - {state for state, _ in EXECUTION}


def advance(
    table: Mapping[tuple[State, Event], State],
    state: State,
    event: Event,
) -> State:
    """The state that `event` leads to from `state`."""
    try:
        return table[state, event]
    except KeyError:
        allowed = tuple(sorted(e for s, e in table if s is state))
        raise IllegalTransition(state=state, event=event, allowed=allowed) from None
