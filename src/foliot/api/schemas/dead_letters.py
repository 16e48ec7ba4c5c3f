"""What can be asked of dead letters, and done about them."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from foliot.api.schemas.executions import Delay
from foliot.api.schemas.queries import ListQuery, meant_id
from foliot.api.schemas.shape import Shape, Text, UtcTime, Word, word_of
from foliot.core.ids import JobId
from foliot.core.retry import DeadLetterReason
from foliot.store.dead_letters import DeadLetterFilter, DeadLetterKind
from foliot.store.enqueuing import BULK_MAX, Absent

RATE_MAX = 100_000

Reason = Annotated[DeadLetterReason, word_of(DeadLetterReason)]
Kind = Annotated[DeadLetterKind, word_of(DeadLetterKind)]


class DeadLetterQuery(ListQuery):
    status: Kind = DeadLetterKind.OPEN
    job_id: Word | None = None
    reason: Reason | None = None
    fingerprint: Word | None = None
    error: Word | None = Field(None, description="part of the last error's type or message")
    from_: UtcTime | None = Field(None, alias="from", description="first failed_at")
    to: UtcTime | None = Field(None, description="first failed_at that is left out")

    def wanted(self) -> DeadLetterFilter:
        return _filter(self, self.status)


class GroupQuery(ListQuery):
    job_id: Word | None = None

    def job(self) -> JobId | None:
        return _meant_job(self.job_id)


class DiscardQuery(Shape):
    model_config = ConfigDict(strict=False)

    reason: Annotated[Text, Field(min_length=1, max_length=1000)]


class ReplayBody(Shape):
    payload_override: Any = Absent.ABSENT
    idempotency_key: Text | None = None


class ReplayFilter(Shape):
    """Without any field: all that are open."""

    job_id: Word | None = None
    reason: Reason | None = None
    fingerprint: Word | None = None
    error: Word | None = None
    from_: UtcTime | None = Field(None, alias="from")
    to: UtcTime | None = None

    def wanted(self) -> DeadLetterFilter:
        return _filter(self, DeadLetterKind.OPEN)


class ReplayAllBody(Shape):
    """`rate` of them become available in a second, from `delay_seconds` on; at once without one."""

    filter: ReplayFilter
    rate: Annotated[float, Field(gt=0, le=RATE_MAX)] | None = None
    delay_seconds: Delay = 0.0
    limit: Annotated[int, Field(ge=1, le=BULK_MAX)] = BULK_MAX
    dry_run: bool = False
    idempotency_key: Text | None = None


def _filter(asked: DeadLetterQuery | ReplayFilter, kind: DeadLetterKind) -> DeadLetterFilter:
    return DeadLetterFilter(
        kind=kind,
        job_id=_meant_job(asked.job_id),
        fingerprint=asked.fingerprint,
        reason=asked.reason,
        error=asked.error,
        from_=asked.from_,
        to=asked.to,
    )


def _meant_job(job_id: str | None) -> JobId | None:
    return JobId(meant_id(job_id)) if job_id else None
