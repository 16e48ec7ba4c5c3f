"""Executions that take their worker down, or fail too fast to be worth the next try.

A worker that dies may have died of any of the executions it ran: that sends each of them to run
alone in a child process and counts against none. A child that dies ran nothing else: that counts,
and at the limit the execution goes to the dead letters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from foliot.core.model import RetryPolicy
from foliot.core.retry import DeadLetterReason, GiveUp

POISON_FAILURES: Final = 3


class Death(StrEnum):
    """What the execution was doing when the process that held it died."""

    NOT_STARTED = "NOT_STARTED"  # claimed, still in the worker's hands
    SHARED = "SHARED"  # running in a process that ran or could run others
    ALONE = "ALONE"  # running in a child process of its own


@dataclass(frozen=True, slots=True)
class QueueAgain:
    """Back to the queue as it was."""


@dataclass(frozen=True, slots=True)
class RunAlone:
    """Back to the queue, to run in a child process of its own; `crash_count` is the new count."""

    crash_count: int


CrashDecision = QueueAgain | RunAlone | GiveUp


def after_death(
    policy: RetryPolicy, attempt_number: int, crash_count: int, death: Death
) -> CrashDecision:
    """What becomes of an execution whose worker or child process died.

    The attempt stays counted, so an execution that outlives nothing also ends by its attempts.
    `crash_count` is the number of times it has crashed alone before.
    """
    crashes = crash_count + (death is Death.ALONE)
    if crashes >= policy.max_crashes:
        return GiveUp(DeadLetterReason.POISON)
    if attempt_number >= policy.max_attempts:
        return GiveUp(DeadLetterReason.EXHAUSTED)
    if death is Death.NOT_STARTED:
        return QueueAgain()
    return RunAlone(crashes)


def is_poisoned(policy: RetryPolicy, failed_at: Sequence[datetime], now: datetime) -> bool:
    """Whether an execution's failures, the one just now included, came too fast."""
    if policy.poison_window_seconds is None:
        return False
    begin = now - timedelta(seconds=policy.poison_window_seconds)
    return sum(at > begin for at in failed_at) >= POISON_FAILURES
