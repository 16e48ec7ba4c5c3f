"""Executions as they are asked for."""

from typing import Annotated, Any

from pydantic import Field

from foliot.api.schemas.shape import Labels, Priority, Shape, Text, UtcTime, Word
from foliot.store.enqueuing import BULK_MAX, Absent

DELAY_SECONDS_MAX = 3_153_600_000

Delay = Annotated[float, Field(ge=0, le=DELAY_SECONDS_MAX)]
Key = Annotated[Text, Field(min_length=1, max_length=200)]


class TriggerBody(Shape):
    payload_override: Any = Absent.ABSENT
    priority: Priority | None = None
    delay_seconds: Delay | None = None
    run_at: UtcTime | None = None
    idempotency_key: Text | None = None


class EnqueueItem(Shape):
    job: Word
    payload: Any = Absent.ABSENT
    priority: Priority | None = None
    delay_seconds: Delay | None = None
    run_at: UtcTime | None = None
    labels: Labels | None = None
    concurrency_key: Key | None = None
    unique_key: Key | None = None


class EnqueueBody(EnqueueItem):
    idempotency_key: Text | None = None


class BulkBody(Shape):
    executions: Annotated[list[EnqueueItem], Field(min_length=1, max_length=BULK_MAX)]
    idempotency_key: Text | None = None


class CancelBody(Shape):
    reason: Annotated[Text, Field(min_length=1, max_length=1000)] | None = None
    idempotency_key: Text | None = None
