"""After a completion callback was tried: delivered, once more and when, or given up.

Nobody waits for the answer, so patience costs little: whatever the receiver says but success is
tried again for a day, five seconds later at first and an hour later in the end. Only two answers
end it at once: the address may not be called at all, and 410, by which a receiver says that it
wants nothing more. `Retry-After` can lengthen a delay up to an hour.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from foliot.core.ids import ExecutionId
from foliot.core.model import Backoff, ErrorType, Failure, RetryPolicy
from foliot.core.retry import backoff_seconds, honoured_seconds
from foliot.core.states import ExecutionState

PATIENCE_SECONDS: Final = 86_400.0
# Of a callback that waited out a long outage of ours, before it is given up for its age.
ATTEMPTS_MIN: Final = 5
POLICY: Final = RetryPolicy(
    backoff=Backoff.EXPONENTIAL,
    initial_delay_seconds=5,
    multiplier=2,
    max_delay_seconds=3600,
    jitter=0.25,
)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The receiver has it."""


@dataclass(frozen=True, slots=True)
class TryAgain:
    delay_seconds: float


@dataclass(frozen=True, slots=True)
class GivenUp:
    """It stays visible, and can be asked for again."""


Decision = Delivered | TryAgain | GivenUp


def message_id_of(execution_id: ExecutionId) -> str:
    """The same for every try; another than that of a call of the execution's target."""
    return f"{execution_id}-ended"


def event_type_of(status: ExecutionState) -> str:
    return f"execution.{status.value.lower()}"


def decide(
    failure: Failure | None, attempt_number: int, age_seconds: float, *, chance: float
) -> Decision:
    """What follows attempt `attempt_number` (the first is 1) of a callback that has been waiting
    to be delivered for so long; `chance` lies in [0, 1)."""
    if failure is None:
        return Delivered()
    if failure.type is ErrorType.TARGET_REFUSED or failure.http_status == HTTPStatus.GONE:
        return GivenUp()
    delay = backoff_seconds(POLICY, attempt_number, chance=chance)
    delay = max(delay, honoured_seconds(failure.retry_after_seconds))
    if age_seconds + delay > PATIENCE_SECONDS and attempt_number >= ATTEMPTS_MIN:
        return GivenUp()
    return TryAgain(delay)
