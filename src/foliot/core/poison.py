"""Executions that take their worker down, or fail too fast to be worth the next try.

A worker that dies may have died of any of the executions it ran: that sends each of them to run
alone in a child process and is held against none. A child that dies ran nothing else: that counts,
and at the limit the execution goes to the dead letters. What had not begun is as it was before the
claim.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from foliot.core.model import RetryPolicy
from foliot.core.retry import DeadLetterReason, GiveUp

POISON_FAILURES: Final = 3
UNCOUNTED_CLAIMS_MAX: Final = 5


class Death(StrEnum):
    """What the execution was doing when the process that held it died."""

    NOT_STARTED = "NOT_STARTED"  # claimed, still in the worker's hands
    SHARED = "SHARED"  # running in a process that ran or could run others
    ALONE = "ALONE"  # running in a child process of its own


def death_of(*, said_begun: bool, run_alone: bool, fence: int, attempt_number: int) -> Death:
    """How it was when its worker died, by what the worker had said.

    A worker says what it has begun up to a second late. What kills its worker within that second
    would never count: so what was claimed five times without an attempt counts as begun.
    """
    if not said_begun and fence - attempt_number < UNCOUNTED_CLAIMS_MAX:
        return Death.NOT_STARTED
    return Death.ALONE if run_alone else Death.SHARED


@dataclass(frozen=True, slots=True)
class QueueAgain:
    """Back to the queue as it was; `give_back`: the attempt is uncounted, since it never began."""

    give_back: bool = True


@dataclass(frozen=True, slots=True)
class RunAlone:
    """Back to the queue, to run in a child process of its own; `crash_count` is the new count.

    The attempt stays counted, for it did begin.
    """

    crash_count: int


CrashDecision = QueueAgain | RunAlone | GiveUp


def after_death(
    policy: RetryPolicy, attempt_number: int, crash_count: int, death: Death
) -> CrashDecision:
    """What becomes of an execution whose worker or child process died.

    A shared death is followed by a run alone even where no attempt is left: it may have been the
    victim of another. That ends, because its next death is its own. `crash_count` is the number of
    times it has crashed alone before; a crash that is both the last attempt and the limit is
    poison, because the dead letter names the cause, not the count.
    """
    match death:
        case Death.NOT_STARTED:
            return QueueAgain()
        case Death.SHARED:
            return RunAlone(crash_count)
        case Death.ALONE:
            return _after_crash(policy, attempt_number, crash_count + 1)


def _after_crash(policy: RetryPolicy, attempt_number: int, crash_count: int) -> CrashDecision:
    if crash_count >= policy.max_crashes:
        return GiveUp(DeadLetterReason.POISON)
    if attempt_number >= policy.max_attempts:
        return GiveUp(DeadLetterReason.EXHAUSTED)
    return RunAlone(crash_count)


def is_poisoned(policy: RetryPolicy, failed_at: Sequence[datetime], now: datetime) -> bool:
    """Whether an execution's failures, the one just now included, came too fast."""
    if policy.poison_window_seconds is None:
        return False
    begin = now - timedelta(seconds=policy.poison_window_seconds)
    return sum(at > begin for at in failed_at) >= POISON_FAILURES
