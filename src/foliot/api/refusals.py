"""What only the edge refuses: no key, a cursor from elsewhere, a change without a version."""

from dataclasses import dataclass
from typing import ClassVar

from foliot.core.errors import FoliotError, InvalidInput
from foliot.store.errors import DatabaseError


@dataclass(eq=False)
class Unauthenticated(FoliotError):
    code: ClassVar[str] = "UNAUTHENTICATED"

    reason: str
    hint: str = "send Authorization: Bearer <key>"

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class InvalidCursor(InvalidInput):
    """Not a cursor of this list: made up, cut short, or of other filters."""

    code: ClassVar[str] = "INVALID_CURSOR"

    field: str | None = "cursor"
    hint: str | None = (
        "use next_cursor as it was given, with the same filters, or begin without one"
    )


@dataclass(eq=False)
class VersionRequired(FoliotError):
    code: ClassVar[str] = "VERSION_REQUIRED"

    hint: str = "send If-Match with the ETag of what you read, or version in the body"

    def __str__(self) -> str:
        return "a job is replaced only by those who say which version they have seen"


@dataclass(eq=False)
class ExecutionNotFound(FoliotError):
    """Unknown, or another tenant's: nobody can tell the two apart."""

    code: ClassVar[str] = "EXECUTION_NOT_FOUND"

    execution_id: str

    def __str__(self) -> str:
        return f"there is no execution {self.execution_id}"


@dataclass(eq=False)
class TenantNotFound(FoliotError):
    code: ClassVar[str] = "TENANT_NOT_FOUND"

    tenant_id: str

    def __str__(self) -> str:
        return f"there is no tenant {self.tenant_id}"


@dataclass(eq=False)
class ExecutionFinished(FoliotError):
    code: ClassVar[str] = "EXECUTION_FINISHED"

    execution_id: str
    status: str
    hint: str = "what is over cannot be cancelled"

    def __str__(self) -> str:
        return f"execution {self.execution_id} is {self.status} already"


@dataclass(eq=False)
class RunNotFinished(FoliotError):
    code: ClassVar[str] = "RUN_NOT_FINISHED"

    execution_id: str
    status: str
    hint: str = "wait for its end, or cancel it first"

    def __str__(self) -> str:
        return f"execution {self.execution_id} is {self.status}, and not over"


@dataclass(eq=False)
class EndTold(ExecutionFinished):
    """The end of this very attempt was told or decided before."""

    hint: str = "nothing is left to be done; GET the execution for how it ended"


@dataclass(eq=False)
class NotTakenOver(FoliotError):
    """It runs in a worker, which tells its end itself."""

    code: ClassVar[str] = "SUPERSEDED"

    execution_id: str
    hint: str = "an HTTP target takes one over with status 202 and X-Foliot-Async: true"

    def __str__(self) -> str:
        return f"execution {self.execution_id} is in the hands of a worker"


@dataclass(eq=False)
class IdempotencyInFlight(FoliotError):
    code: ClassVar[str] = "IDEMPOTENCY_IN_FLIGHT"

    key: str
    hint: str = "wait a moment and send it again with the same key"

    def __str__(self) -> str:
        return f"an earlier request with the idempotency key {self.key!r} is still at work"


@dataclass(eq=False)
class AnswerLost(DatabaseError):
    """A change was made, and the database went away before it could be shown."""

    code: ClassVar[str] = "SCHEDULER_UNAVAILABLE"

    reason: str

    def __str__(self) -> str:
        return f"a change was made and could not be read: {self.reason}"
