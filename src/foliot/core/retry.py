"""After a failure: try again, when, or never. One attempt's end in, one decision out.

A failure that waiting cannot mend is not repeated: of HTTP answers, a 4xx says that the request is
wrong and stays so. Two of them do not: 429 is "later", and 408 is a timeout in the words of HTTP,
so it is retried like one. The delay grows by the policy, is spread by
jitter and then capped; a target's `Retry-After` can lengthen it up to an hour, never shorten it.
Chance comes in as a number: the same facts always give the same decision.
"""

import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final, assert_never

from foliot.core.model import Backoff, ErrorType, Failure, RetryPolicy
from foliot.core.states import ExecutionEvent

RETRY_AFTER_SECONDS_MAX: Final = 3600.0
SNOOZE_SECONDS_MAX: Final = 366 * 86_400.0
_SECONDS: Final = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")
_HEADER_LENGTH_MAX: Final = 64


class DeadLetterReason(StrEnum):
    EXHAUSTED = "EXHAUSTED"  # the last attempt failed
    NON_RETRYABLE = "NON_RETRYABLE"  # another attempt would end the same way
    POISON = "POISON"  # it takes its worker down, or fails too fast
    EXPIRED = "EXPIRED"  # nobody started it before its start deadline


@dataclass(frozen=True, slots=True)
class Retry:
    """Another attempt, this long after the failure."""

    delay_seconds: float


@dataclass(frozen=True, slots=True)
class Snooze:
    """Later, at the handler's own wish: the attempt is given back."""

    delay_seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No further attempt: it goes to the dead letters, where a person decides."""

    reason: DeadLetterReason


@dataclass(frozen=True, slots=True)
class Cancelled:
    """It ended because someone asked; that is no failure and leaves no dead letter."""


RetryDecision = Retry | GiveUp | Cancelled


def decide(
    policy: RetryPolicy,
    attempt_number: int,
    failure: Failure,
    *,
    chance: float,
    poisoned: bool = False,
) -> RetryDecision:
    """What follows attempt `attempt_number` (the first is 1); `chance` lies in [0, 1).

    A failure that cannot be mended is called that even on the last attempt, and poison before
    exhaustion: the dead letter names the cause, not the count.
    """
    if failure.type is ErrorType.CANCELLED:
        return Cancelled()
    if failure.type is ErrorType.EXPIRED:
        return GiveUp(DeadLetterReason.EXPIRED)
    if failure.do_not_retry or not is_retryable(failure):
        return GiveUp(DeadLetterReason.NON_RETRYABLE)
    if poisoned:
        return GiveUp(DeadLetterReason.POISON)
    if attempt_number >= policy.max_attempts:
        return GiveUp(DeadLetterReason.EXHAUSTED)
    delay = backoff_seconds(policy, attempt_number, chance=chance)
    return Retry(max(delay, honoured_seconds(failure.retry_after_seconds)))


def snooze(seconds: float) -> Snooze:
    """A handler's wish for later, within a year; a wish that is no time means at once."""
    return Snooze(min(seconds, SNOOZE_SECONDS_MAX) if seconds > 0 else 0.0)


def event_of(decision: RetryDecision | Snooze, failure: Failure | None) -> ExecutionEvent:
    """How `decision` moves the execution; what ran out of time at the end is TIMED_OUT."""
    match decision:
        case Retry():
            return ExecutionEvent.RETRY
        case Snooze():
            return ExecutionEvent.SNOOZE
        case Cancelled():
            return ExecutionEvent.CANCEL
        case GiveUp():
            timed_out = failure is not None and failure.type is ErrorType.TIMEOUT
            return ExecutionEvent.TIME_OUT if timed_out else ExecutionEvent.FAIL


def is_retryable(failure: Failure) -> bool:
    """Whether the same request might succeed later without anyone changing it."""
    match failure.type:
        case ErrorType.HTTP_ERROR:
            return _is_retryable_status(failure.http_status)
        case ErrorType.TIMEOUT | ErrorType.CONNECTION | ErrorType.WORKER_LOST:
            return True
        case ErrorType.HANDLER_ERROR | ErrorType.EXIT_CODE:
            return True
        case ErrorType.TARGET_REFUSED | ErrorType.INVALID_PAYLOAD | ErrorType.MISSING_SECRET:
            return False
        case ErrorType.EXPRESSION_ERROR | ErrorType.RESULT_TOO_LARGE:
            return False
        case ErrorType.EXPIRED | ErrorType.CANCELLED:
            return False
        case _:
            assert_never(failure.type)


def backoff_seconds(policy: RetryPolicy, attempt_number: int, *, chance: float) -> float:
    """The delay after attempt `attempt_number`: grown, spread by the jitter, then capped.

    The jitter comes before the cap, so the cap is a promise; the delays that reach it coincide.
    """
    spread = 1 + policy.jitter * (2 * chance - 1)
    return min(_grown(policy, max(1, attempt_number)) * spread, policy.max_delay_seconds)


def parse_retry_after(header: str, now: datetime) -> float | None:
    """Seconds to wait from `now`, from a `Retry-After` value; None if it says nothing usable."""
    text = header.strip()
    if len(text) > _HEADER_LENGTH_MAX:
        return None
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        at = parsedate_to_datetime(text)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return max(0.0, (at - now).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def honoured_seconds(retry_after_seconds: float | None) -> float:
    """At most an hour; a value that is no duration (negative, not a number) asks for nothing."""
    if retry_after_seconds is None or not retry_after_seconds > 0:
        return 0.0
    return min(retry_after_seconds, RETRY_AFTER_SECONDS_MAX)


def _is_retryable_status(status: int | None) -> bool:
    """5xx, 429 and 408; no other 4xx, and nothing below.

    Without a status the answer was not even HTTP: as good as a broken connection.
    """
    return status is None or 500 <= status <= 599 or status in (408, 429)


def _grown(policy: RetryPolicy, attempt_number: int) -> float:
    """The delay before jitter and cap, stopped where floats end: infinity times 0 is no delay."""
    initial = policy.initial_delay_seconds
    if initial <= 0:
        return 0.0
    match policy.backoff:
        case Backoff.FIXED:
            return initial
        case Backoff.LINEAR:
            return initial * attempt_number
        case Backoff.EXPONENTIAL:
            try:
                grown = initial * float(policy.multiplier) ** (attempt_number - 1)
            except OverflowError:
                return sys.float_info.max
            return min(grown, sys.float_info.max)
