"""Dead letters: executions that ended without success and await a decision.

A letter is open until it is replayed or discarded; then it is closed, for good. It is known by the
id of its execution, so there is one at the most. Lists go by the time of the failure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import asyncpg

from foliot.core.errors import DeadLetterClosed, DeadLetterNotFound
from foliot.core.ids import ExecutionId, JobId, TenantId
from foliot.core.model import Json
from foliot.core.retry import DeadLetterReason
from foliot.store.database import Database
from foliot.store.statements import statement

_LIST_PAGE: Final = statement("dead_letters/list_page")
_COUNT: Final = statement("dead_letters/count")
_READ: Final = statement("dead_letters/read")
_DISCARD: Final = statement("dead_letters/discard")
_LIST_GROUPS: Final = statement("dead_letters/list_groups")
_COUNT_GROUPS: Final = statement("dead_letters/count_groups")
_READ_DEPTH: Final = statement("dead_letters/read_depth")

# Rows that one page may look at: as a rule the first few are enough.
SCANNED: Final = 5_000
DEPTH_MAX: Final = 100_000


class DeadLetterKind(StrEnum):
    OPEN = "OPEN"
    REPLAYED = "REPLAYED"
    DISCARDED = "DISCARDED"


@dataclass(frozen=True, slots=True)
class StoredDeadLetter:
    """`error` is of the last attempt. In lists a large payload is omitted."""

    id: ExecutionId
    job_id: JobId
    job_version: int
    job_name: str
    reason: DeadLetterReason
    fingerprint: str
    scheduled_time: datetime
    failed_at: datetime
    payload: Json
    payload_omitted: bool
    total_attempts: int
    error: Json
    replay_at: datetime | None
    replayed_as: ExecutionId | None
    replayed_at: datetime | None
    discarded_at: datetime | None
    discard_reason: str | None

    @property
    def kind(self) -> DeadLetterKind:
        if self.replayed_at is not None:
            return DeadLetterKind.REPLAYED
        return DeadLetterKind.OPEN if self.discarded_at is None else DeadLetterKind.DISCARDED


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """What is not None must hold; `from_` and `to` bound the time of the failure, half-open."""

    kind: DeadLetterKind = DeadLetterKind.OPEN
    job_id: JobId | None = None
    fingerprint: str | None = None
    reason: DeadLetterReason | None = None
    error: str | None = None  # part of its type and message
    from_: datetime | None = None
    to: datetime | None = None

    def columns(self) -> tuple[object, ...]:
        """In the order of the statements."""
        return (
            self.kind,
            self.job_id,
            self.fingerprint,
            self.reason,
            self.error,
            self.from_,
            self.to,
        )


@dataclass(frozen=True, slots=True)
class LetterPlace:
    """Where a page ended."""

    failed_at: datetime
    id: ExecutionId


@dataclass(frozen=True, slots=True)
class LetterPage:
    """`ended`: so much was looked at that the page ended before it was full; it goes on there."""

    letters: list[StoredDeadLetter]
    ended: LetterPlace | None = None


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """Open letters of one fingerprint; `sample` is the newest of them."""

    fingerprint: str
    number: int
    first_failed_at: datetime
    last_failed_at: datetime
    sample: "LetterSample"


@dataclass(frozen=True, slots=True)
class LetterSample:
    id: ExecutionId
    job_id: JobId
    job_name: str
    reason: DeadLetterReason
    error: Json


@dataclass(frozen=True, slots=True)
class Depth:
    """How many are open, up to `DEPTH_MAX`, and how long the oldest has been; 0 without any."""

    letters: int
    oldest_seconds: float


async def list_letters(
    database: Database,
    tenant_id: TenantId,
    wanted: DeadLetterFilter,
    *,
    after: LetterPlace | None = None,
    limit: int,
    oldest_first: bool = False,
) -> LetterPage:
    """At most `limit` letters from `after` on, the newest failure first unless told otherwise."""
    place = (None, None) if after is None else (after.failed_at, after.id)
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(
            _LIST_PAGE, tenant_id, *wanted.columns(), oldest_first, *place, limit, SCANNED
        )
    ended = None
    if rows and not rows[-1]["fits"]:
        last = rows.pop()
        ended = LetterPlace(last["failed_at"], ExecutionId(last["id"]))
    return LetterPage([_stored(row) for row in rows], ended)


async def count_letters(database: Database, tenant_id: TenantId, wanted: DeadLetterFilter) -> int:
    async with database.transaction(tenant_id) as session:
        return int(await session.fetch_value(_COUNT, tenant_id, *wanted.columns()))


async def read_letter(
    database: Database, tenant_id: TenantId, letter_id: ExecutionId
) -> StoredDeadLetter:
    async with database.transaction(tenant_id) as session:
        row = await session.fetch_row(_READ, tenant_id, letter_id)
    if row is None:
        raise DeadLetterNotFound(letter_id)
    return _stored(row)


async def discard(
    database: Database,
    tenant_id: TenantId,
    letter_id: ExecutionId,
    reason: str,
    now: datetime | None = None,
) -> StoredDeadLetter:
    """Close a letter without another try. Of several who do, the first one's reason counts."""
    async with database.transaction(tenant_id) as session:
        await session.execute(_DISCARD, tenant_id, letter_id, reason, now)
    letter = await read_letter(database, tenant_id, letter_id)
    if letter.replayed_as is not None:
        raise DeadLetterClosed(letter_id, f"was replayed as {letter.replayed_as}")
    return letter


async def list_groups(
    database: Database,
    tenant_id: TenantId,
    job_id: JobId | None,
    *,
    after: tuple[datetime, str] | None = None,
    limit: int,
) -> list[LetterGroup]:
    """Open letters by fingerprint, the group with the newest failure first."""
    place = after or (None, None)
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(_LIST_GROUPS, tenant_id, job_id, *place, limit)
    return [
        LetterGroup(
            row["fingerprint"],
            row["number"],
            row["first_failed_at"],
            row["last_failed_at"],
            LetterSample(**_columns(row, LetterSample.__slots__)),
        )
        for row in rows
    ]


async def count_groups(database: Database, tenant_id: TenantId, job_id: JobId | None) -> int:
    async with database.transaction(tenant_id) as session:
        return int(await session.fetch_value(_COUNT_GROUPS, tenant_id, job_id))


async def read_depth(database: Database, now: datetime | None = None) -> Depth:
    """Of all tenants."""
    row = await database.fetch_row(_READ_DEPTH, DEPTH_MAX, now)
    number, seconds = row or (0, None)
    return Depth(number, max(0.0, seconds or 0.0))


def _stored(row: asyncpg.Record) -> StoredDeadLetter:
    return StoredDeadLetter(**_columns(row, StoredDeadLetter.__slots__))


def _columns(row: asyncpg.Record, names: Sequence[str]) -> dict[str, Any]:
    return {name: row[name] for name in names} | {"reason": DeadLetterReason(row["reason"])}
