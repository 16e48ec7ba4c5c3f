"""When a job that follows other jobs fires.

A parent counts by its newest completion since the dependent's last fire, so three runs of one
parent while the other is still busy cause one fire, not three. ALL waits for every parent; ANY
fires with those that have completed by then. FINISHED means that the occurrence is over after it
was due to run: SUCCEEDED, FAILED, TIMED_OUT or CANCELLED. A SKIPPED one never was to run, so it
completes nothing.

What completes while the dependent is paused is kept, and when it goes on it fires once for all of
that: of each parent only the newest counts anyway. Whoever wants nothing late has the misfire
policy SKIP.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from foliot.core.ids import ExecutionId, JobId
from foliot.core.model import After, AfterMode, AfterOn, MisfirePolicy
from foliot.core.schedule.misfire import SKIP_AFTER_SECONDS
from foliot.core.states import ExecutionState

_COUNTS: Final = {
    AfterOn.SUCCEEDED: frozenset({ExecutionState.SUCCEEDED}),
    AfterOn.FINISHED: frozenset(
        {
            ExecutionState.SUCCEEDED,
            ExecutionState.FAILED,
            ExecutionState.TIMED_OUT,
            ExecutionState.CANCELLED,
        }
    ),
}


@dataclass(frozen=True, slots=True)
class Completion:
    """A parent's execution that became terminal since the dependent last fired."""

    job_id: JobId
    execution_id: ExecutionId
    status: ExecutionState
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class Fire:
    """`parents` in the order the schedule names their jobs; `completed_at` is the last finish."""

    parents: tuple[ExecutionId, ...]
    completed_at: datetime


@dataclass(frozen=True, slots=True)
class Wait:
    missing: tuple[JobId, ...]


def decide(after: After, completions: Iterable[Completion]) -> Fire | Wait:
    """Fire, or wait for the named jobs. Completions of other jobs and states are passed over."""
    newest: dict[JobId, Completion] = {}
    for completion in completions:
        if completion.status in _COUNTS[after.on]:
            known = newest.setdefault(completion.job_id, completion)
            newest[completion.job_id] = max(known, completion, key=_age)
    missing = tuple(job for job in after.jobs if job not in newest)
    causes = [newest[job] for job in after.jobs if job in newest]
    if not causes or (missing and after.mode is AfterMode.ALL):
        return Wait(missing)
    return Fire(
        parents=tuple(cause.execution_id for cause in causes),
        completed_at=max(cause.finished_at for cause in causes),
    )


def is_missed(policy: MisfirePolicy, fire: Fire, now: datetime) -> bool:
    """Whether it comes too late to run: after an outage or a pause, for whoever skips what is."""
    late = now - fire.completed_at > timedelta(seconds=SKIP_AFTER_SECONDS)
    return policy is MisfirePolicy.SKIP and late


def _age(completion: Completion) -> tuple[datetime, ExecutionId]:
    """The id breaks a tie, so that every node names the same parent."""
    return completion.finished_at, completion.execution_id
