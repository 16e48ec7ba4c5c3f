"""Names for things. Ids are NewTypes: an execution id cannot be passed where a job id is meant.

The id of an execution is its idempotency: the same cause always gives the same id, so inserting
it twice changes nothing, on whichever node and after whichever crash.
"""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NewType
from uuid import UUID

from foliot.core.errors import InvalidInput

JobId = NewType("JobId", UUID)
ExecutionId = NewType("ExecutionId", UUID)
TenantId = NewType("TenantId", UUID)
WorkerId = NewType("WorkerId", UUID)
SchedulerId = NewType("SchedulerId", UUID)
DagRunId = NewType("DagRunId", UUID)

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SHARDS: Final = 64
_MICROSECOND: Final = timedelta(microseconds=1)
_MILLISECONDS_MAX: Final = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


def microseconds(at: datetime) -> int:
    """Whole microseconds since 1970, exact: floats lose the last digit after the year 2255."""
    return (at - EPOCH) // _MICROSECOND


def from_microseconds(value: int) -> datetime:
    return EPOCH + timedelta(microseconds=value)


def shard_of(job: JobId) -> int:
    """Which 1/64 of the jobs this is in. Hashed: time-ordered ids share their first bits."""
    return hashlib.blake2b(job.bytes, digest_size=2, person=b"foliot-shard").digest()[0] % SHARDS


def scheduled_execution(job: JobId, instant: datetime) -> ExecutionId:
    """The one execution of `job` for `instant`, whoever fires it and however often."""
    at = microseconds(instant)
    return _execution(at // 1000, b"schedule", job.bytes, b"%d" % at)


def after_execution(
    job: JobId, parents: Iterable[ExecutionId], completed_at: datetime
) -> ExecutionId:
    """The one execution of `job` that these parents cause, in whichever order they are named.

    `completed_at` is the stored finish of the last parent, not the time of asking: a second asker
    must get the same id.
    """
    ordered = b"".join(sorted({parent.bytes for parent in parents}))
    return _execution(microseconds(completed_at) // 1000, b"after", job.bytes, ordered)


def requested_execution(
    tenant: TenantId, job: JobId, kind: str, request_id: str, at: datetime
) -> ExecutionId:
    """The execution of a trigger, enqueue, replay or backfill; `at` is when it was first seen."""
    return _execution(
        microseconds(at) // 1000, kind.encode(), tenant.bytes, job.bytes, request_id.encode()
    )


def replayed_execution(dead: ExecutionId, failed_at: datetime) -> ExecutionId:
    """The one execution that replaying a dead letter makes, whoever asks and however often."""
    return _execution(microseconds(failed_at) // 1000, b"dead letter", dead.bytes)


def instant_of(execution: ExecutionId) -> datetime:
    """When this execution was due, to the millisecond: it bounds the search for its history.

    An id from outside may be any UUID: what Foliot cannot have made is refused, not looked up.
    """
    milliseconds = execution.int >> 80
    if execution.version != 8 or milliseconds > _MILLISECONDS_MAX:
        raise InvalidInput(f"{execution} is not an execution id", field="execution_id")
    return from_microseconds(milliseconds * 1000)


def _execution(milliseconds: int, kind: bytes, *parts: bytes) -> ExecutionId:
    """A UUIDv8: 48 bits of time, then 122 - 48 bits of a hash over length-prefixed parts."""
    if milliseconds < 0:
        raise InvalidInput(
            "the time lies before 1970", field="scheduled_time", hint="use a later time"
        )
    digest = hashlib.blake2b(digest_size=10, person=b"foliot-exec")
    for part in (kind, *parts):
        digest.update(len(part).to_bytes(4, "big") + part)
    raw = bytearray(milliseconds.to_bytes(6, "big") + digest.digest())
    raw[6] = 0x80 | raw[6] & 0x0F
    raw[8] = 0x80 | raw[8] & 0x3F
    return ExecutionId(UUID(bytes=bytes(raw)))
