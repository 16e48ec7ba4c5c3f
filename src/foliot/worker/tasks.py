"""What the claiming side and the running side of a worker tell each other about one attempt.

The claiming side hands over a Task and hears how it Ended. The running side never touches the
database and never raises: whatever a handler does, even to its process, is one of the ends below.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

import msgspec

from foliot.core.model import CommandTarget, Failure, HttpTarget, Json, TargetType

# What is read before an attempt begins, as keys and secrets, is there by then or not waited for: a
# start deadline passes meanwhile, and another worker may not have to wait.
READ_WITHIN_SECONDS: Final = 5.0


class Task(msgspec.Struct, frozen=True, array_like=True):
    """One attempt to make: of a handler by its name, or else of the one other target given.

    A struct, because it is written for another process tens of thousands of times a second."""

    execution_id: UUID
    fence: int
    attempt_number: int
    max_attempts: int
    tenant_id: UUID
    job_id: UUID
    job_name: str
    handler: str
    payload: Json
    timeout_seconds: float
    cancel_grace_seconds: float
    run_alone: bool
    scheduled_time: datetime
    idempotency_key: str
    trigger: str
    trace_id: str | None = None
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    payload_is_jobs: bool = True  # and none that came with a request
    http: HttpTarget | None = None
    command: CommandTarget | None = None
    message_id: str = ""  # what a callback is known by, if not by its execution's id

    @property
    def target_type(self) -> TargetType:
        if self.http is not None:
            return TargetType.HTTP
        return TargetType.HANDLER if self.command is None else TargetType.COMMAND


@dataclass(frozen=True, slots=True)
class Succeeded:
    """`is_marker`: in place of a result that is too large or no JSON. `response`: what the other
    side of a callback said."""

    result: Json = None
    is_marker: bool = False
    response: Json = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The target failed, or ran out of time (ErrorType.TIMEOUT)."""

    failure: Failure
    response: Json = None


@dataclass(frozen=True, slots=True)
class Snoozed:
    seconds: float


@dataclass(frozen=True, slots=True)
class Cancelled:
    """It was asked to stop, and it has stopped or was stopped; `reason` is the asker's."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class HandedBack:
    """It never began, or its process went down for another's fault: costs no attempt."""

    reason: str


@dataclass(frozen=True, slots=True)
class Crashed:
    """Its process died under it: it exited, a segmentation fault, no memory left.

    `alone` if nothing else ever ran in that process. Where it is not, the next attempt should run
    alone: this one was suspected, not convicted.
    """

    failure: Failure
    alone: bool


@dataclass(frozen=True, slots=True)
class Held:
    """It was not tried: where it goes takes no calls for so long. Costs no attempt."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The other side has it and will tell its end by the API; this worker is done with it."""


Ended = Succeeded | Failed | Snoozed | Cancelled | HandedBack | Crashed | Held | HandedOver


async def already(ended: Ended) -> Ended:
    """An end that is known before anything began, for whoever awaits one."""
    return ended


class LogSource(StrEnum):
    LOG = "log"
    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One line; `at_seconds` counts from the start of the attempt."""

    at_seconds: float
    level: str
    source: LogSource
    message: str


class Reporter(Protocol):
    """Hears of an attempt under way, on the service's loop; never blocks, never raises."""

    def started(self, task: Task) -> None: ...

    def logged(self, task: Task, records: Sequence[LogRecord]) -> None: ...

    def progressed(self, task: Task, percent: float | None, message: str) -> None: ...


class Executor(Protocol):
    """Makes attempts of one type of target."""

    async def start(self) -> None:
        """For handlers: imports the user's modules in its processes, or raises
        ModuleNotImported."""

    def run(self, task: Task, reporter: Reporter) -> Awaitable[Ended]:
        """How it ends, as a future where no work of the loop's own is needed for it. Raises
        nothing but CancelledError; timeout, cancellation and grace are kept for it."""

    def cancel(self, execution_id: UUID, reason: str) -> None:
        """Asks first, kills after the task's grace; of an execution not held it does nothing."""

    async def close(self, *, grace_seconds: float) -> None:
        """What still runs after the grace is killed; no process is left."""


class Runner(Executor, Protocol):
    """Makes attempts of every type of target that its worker serves."""

    @property
    def target_types(self) -> frozenset[TargetType]: ...

    @property
    def handlers(self) -> frozenset[str]:
        """The names that it can run; known once started."""
