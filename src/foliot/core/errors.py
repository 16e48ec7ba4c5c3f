"""What can go wrong. Every error carries its data, so a caller can branch and a log can index.

`code` is the REST contract's word; `field` names what the user must change; `hint` says how.
Translation to HTTP, exit codes and log lines happens once, at the edge.
"""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID


class FoliotError(Exception):
    """The root of everything Foliot raises on purpose."""

    code: ClassVar[str] = "INTERNAL_ERROR"


@dataclass(eq=False)
class InvalidInput(FoliotError):
    """A value the user gave cannot be used as it stands."""

    code: ClassVar[str] = "VALIDATION_ERROR"

    reason: str
    field: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        fix = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.reason}{fix}"


@dataclass(eq=False)
class PayloadTooLarge(InvalidInput):
    """A value is well-formed, and larger than what is kept of its kind."""

    code: ClassVar[str] = "PAYLOAD_TOO_LARGE"


@dataclass(eq=False)
class InvalidCron(InvalidInput):
    """The cron expression does not parse, or can never match."""

    code: ClassVar[str] = "INVALID_CRON"

    expression: str = ""
    field: str | None = "cron_expression"


@dataclass(eq=False)
class InvalidTimezone(InvalidInput):
    """No such IANA zone."""

    code: ClassVar[str] = "INVALID_TIMEZONE"

    timezone: str = ""
    field: str | None = "timezone"


@dataclass(eq=False)
class InvalidSchedule(InvalidInput):
    """The parts of a schedule contradict each other, or one is missing."""

    code: ClassVar[str] = "INVALID_SCHEDULE"


@dataclass(eq=False)
class InvalidGraph(InvalidInput):
    """A DAG that cannot be run: a task named twice, a dependency that does not exist."""

    tasks: tuple[str, ...] = ()
    field: str | None = "tasks"


@dataclass(eq=False)
class CycleDetected(InvalidInput):
    """Dependencies that lead back to themselves; `cycle` ends with the name it began with."""

    code: ClassVar[str] = "CYCLE_DETECTED"

    cycle: tuple[str, ...] = ()
    field: str | None = "dependencies"


@dataclass(eq=False)
class InvalidExpression(InvalidInput):
    """A condition or reference that does not parse; `position` counts characters from 0."""

    expression: str = ""
    position: int = 0


@dataclass(eq=False)
class ExpressionFailed(FoliotError):
    """A well-formed expression met values it cannot use: a missing path, a number for a text."""

    code: ClassVar[str] = "EXPRESSION_ERROR"

    reason: str
    expression: str = ""

    def __str__(self) -> str:
        return f"{self.expression}: {self.reason}" if self.expression else self.reason


@dataclass(eq=False)
class UnresolvedKey(InvalidInput):
    """A concurrency key that this payload cannot fill; `path` is what it looked for."""

    path: str = ""
    field: str | None = "concurrency.key"


@dataclass(eq=False)
class IllegalTransition(FoliotError):
    """An event the state machine has no row for: a bug or a race, never a user's fault."""

    code: ClassVar[str] = "ILLEGAL_TRANSITION"

    state: str
    event: str
    allowed: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        events = ", ".join(self.allowed) or "nothing: it is final"
        return f"{self.state} does not take {self.event} (it takes {events})"


@dataclass(eq=False)
class Superseded(FoliotError):
    """A result, heartbeat or log came from a claim that is no longer the current one."""

    code: ClassVar[str] = "SUPERSEDED"

    execution_id: UUID
    fence: int

    def __str__(self) -> str:
        return f"execution {self.execution_id} is no longer held under fence {self.fence}"


@dataclass(eq=False)
class JobNotFound(FoliotError):
    """No such job, or none of this tenant's, or one that was deleted; `job_id` may be a name."""

    code: ClassVar[str] = "JOB_NOT_FOUND"

    job_id: UUID | str

    def __str__(self) -> str:
        return f"there is no job {self.job_id}"


@dataclass(eq=False)
class IdempotencyKeyReused(FoliotError):
    """The key came before, with another request."""

    code: ClassVar[str] = "IDEMPOTENCY_KEY_REUSED"

    key: str

    def __str__(self) -> str:
        return f"the idempotency key {self.key!r} was used for another request (choose a new one)"


@dataclass(eq=False)
class JobAlreadyExists(FoliotError):
    """Another job that is not over has this name."""

    code: ClassVar[str] = "JOB_ALREADY_EXISTS"

    name: str

    def __str__(self) -> str:
        return f"there is a job named {self.name!r} already (choose another name, or delete it)"


@dataclass(eq=False)
class VersionConflict(FoliotError):
    """Somebody else has changed the job since it was read."""

    code: ClassVar[str] = "VERSION_CONFLICT"

    job_id: UUID
    expected: int
    current: int

    def __str__(self) -> str:
        return (
            f"job {self.job_id} has version {self.current}, not {self.expected}"
            " (read it again and repeat the change)"
        )


@dataclass(eq=False)
class SecretNotFound(FoliotError):
    code: ClassVar[str] = "SECRET_NOT_FOUND"

    name: str

    def __str__(self) -> str:
        return f"there is no secret {self.name}"


@dataclass(eq=False)
class QueueNotFound(FoliotError):
    """No job ever named it, and nobody has set anything for it."""

    code: ClassVar[str] = "QUEUE_NOT_FOUND"

    name: str

    def __str__(self) -> str:
        return f"there is no queue {self.name!r} (it comes into being with the first job in it)"


@dataclass(eq=False)
class DeadLetterNotFound(FoliotError):
    """No dead letter has this id, or none of this tenant's."""

    code: ClassVar[str] = "DEAD_LETTER_NOT_FOUND"

    letter_id: UUID | str

    def __str__(self) -> str:
        return f"there is no dead letter {self.letter_id}"


@dataclass(eq=False)
class DeadLetterClosed(FoliotError):
    """It was discarded and is to be replayed, or the other way round; `how` says which."""

    code: ClassVar[str] = "DEAD_LETTER_CLOSED"

    letter_id: UUID
    how: str

    def __str__(self) -> str:
        return f"dead letter {self.letter_id} {self.how}"
