"""Executions as they are asked for."""

from typing import Annotated, Any, Literal

from pydantic import Field

from foliot.api.schemas.shape import Labels, Priority, Shape, Text, TimeInReach, Word, word_of
from foliot.core.model import ErrorType
from foliot.store.enqueuing import BULK_MAX, Absent

DELAY_SECONDS_MAX = 3_153_600_000

Delay = Annotated[float, Field(ge=0, le=DELAY_SECONDS_MAX)]
Key = Annotated[Text, Field(min_length=1, max_length=200)]


class TriggerBody(Shape):
    payload_override: Any = Absent.ABSENT
    priority: Priority | None = None
    delay_seconds: Delay | None = None
    run_at: TimeInReach | None = None
    idempotency_key: Text | None = None


class EnqueueItem(Shape):
    job: Word
    payload: Any = Absent.ABSENT
    priority: Priority | None = None
    delay_seconds: Delay | None = None
    run_at: TimeInReach | None = None
    labels: Labels | None = None
    concurrency_key: Key | None = None
    unique_key: Key | None = None


class EnqueueBody(EnqueueItem):
    idempotency_key: Text | None = None


class BulkBody(Shape):
    executions: Annotated[list[EnqueueItem], Field(min_length=1, max_length=BULK_MAX)]
    idempotency_key: Text | None = None


class RedeliverBody(Shape):
    idempotency_key: Text | None = None


class CancelBody(Shape):
    reason: Annotated[Text, Field(min_length=1, max_length=1000)] | None = None
    idempotency_key: Text | None = None


# What a target can know about its own failure; the other types are for us to find.
Told = Literal[
    ErrorType.HANDLER_ERROR,
    ErrorType.HTTP_ERROR,
    ErrorType.TIMEOUT,
    ErrorType.CONNECTION,
    ErrorType.EXIT_CODE,
    ErrorType.INVALID_PAYLOAD,
]
Fence = Annotated[int, Field(ge=1, le=2**31 - 1)]


class ProgressBody(Shape):
    fence: Fence
    percent: Annotated[float, Field(ge=0, le=100)] | None = None
    message: Annotated[Text, Field(max_length=1000)] = ""


class CompleteBody(Shape):
    fence: Fence
    result: Any = None
    idempotency_key: Text | None = None


class FailedWith(Shape):
    message: Annotated[Text, Field(max_length=8000)]
    type: Annotated[Told, word_of(ErrorType)] = ErrorType.HANDLER_ERROR


class FailBody(Shape):
    fence: Fence
    error: FailedWith
    retryable: bool = True
    idempotency_key: Text | None = None
