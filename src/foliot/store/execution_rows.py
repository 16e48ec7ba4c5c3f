"""Executions as users see them: live and finished ones in one list, each with all its attempts.

A list is found by ids, and ids are read in one statement over live rows and history: an execution
that finishes meanwhile is found in one of the two. Ids sort by time, so a page goes on below the
last id of the page before; one that finishes between two pages keeps its place.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

import asyncpg

from foliot.core.errors import InvalidInput
from foliot.core.ids import DagRunId, ExecutionId, JobId, TenantId, WorkerId, instant_of
from foliot.core.model import Json, Trigger
from foliot.core.states import ExecutionState
from foliot.store.database import Database
from foliot.store.session import Session
from foliot.store.statements import statement

_READ_ROWS: Final = statement("executions/read_rows")
_LIST_NEWEST: Final = statement("executions/list_newest")
_LIST_OF_JOB: Final = statement("executions/list_of_job")
_COUNT: Final = statement("executions/count")

# How much earlier than the time in its id an execution may have ended: clocks can be told.
SLACK: Final = timedelta(days=1)
# Rows that one page may look at, live and finished: as a rule the first few are enough.
SCANNED: Final = (2_000, 50_000)


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """One try that was made, or is being made; `finished_at` is None for the latter."""

    attempt_number: int
    fence: int
    status: ExecutionState
    started_at: datetime | None
    finished_at: datetime | None
    worker_id: WorkerId | None
    error: Json


@dataclass(frozen=True, slots=True)
class StoredExecution:
    execution_id: ExecutionId
    tenant_id: TenantId
    job_id: JobId
    job_name: str
    job_version: int
    status: ExecutionState
    attempt_number: int
    max_attempts: int
    fence: int
    scheduled_time: datetime
    available_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    trigger: Trigger
    priority: int
    queue: str
    worker_id: WorkerId | None
    labels: Mapping[str, str]
    tags: tuple[str, ...]
    idempotency_key: str
    trace_id: str | None
    retry_of: ExecutionId | None
    cancel_requested_at: datetime | None
    dead_letter_id: UUID | None
    dag_run_id: DagRunId | None
    progress: Json
    result: Json
    result_truncated: bool
    response: Json
    error: Json
    attempts: tuple[StoredAttempt, ...]


@dataclass(frozen=True, slots=True)
class ExecutionPage:
    """`below`: so much was looked at that the page ended before it was full; it goes on there."""

    executions: list[StoredExecution]
    below: ExecutionId | None = None


@dataclass(frozen=True, slots=True)
class ExecutionFilter:
    """What is not None must hold; `from_` and `to` bound the scheduled time, half-open."""

    job_id: JobId | None = None
    statuses: Sequence[ExecutionState] | None = None
    triggers: Sequence[Trigger] | None = None
    queue: str | None = None
    from_: datetime | None = None
    to: datetime | None = None
    worker_id: WorkerId | None = None
    tags: Sequence[str] | None = None
    labels: Mapping[str, str] | None = None
    trace_id: str | None = None
    priority: int | None = None
    dag_run_id: DagRunId | None = None
    handler: str | None = None
    error: str | None = None  # part of its type and message
    retried: bool | None = None
    min_duration_seconds: float | None = None  # of what runs, until now

    def columns(self) -> tuple[object, ...]:
        """In the order of the statements."""
        return (
            self.job_id,
            self.statuses,
            self.triggers,
            self.queue,
            self.from_,
            self.to,
            self.worker_id,
            self.tags,
            self.labels,
            self.trace_id,
            self.priority,
            self.dag_run_id,
            self.handler,
            self.error,
            self.retried,
            self.min_duration_seconds,
        )


async def read_executions(
    database: Database, tenant_id: TenantId, execution_ids: Sequence[ExecutionId]
) -> dict[ExecutionId, StoredExecution]:
    """Those of `execution_ids` that this tenant has or had, by id."""
    return await _read(database, tenant_id, dict.fromkeys(execution_ids))


async def _read(
    database: Database, tenant_id: TenantId, ends: Mapping[ExecutionId, datetime | None]
) -> dict[ExecutionId, StoredExecution]:
    """By id; `ends` has when an execution ended, where that is known."""
    since = dict(searched(ends))
    ended = [ends[each] for each in since]
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(_READ_ROWS, tenant_id, list(since), list(since.values()), ended)
    grouped = groupby(rows, key=itemgetter("id"))
    return {ExecutionId(id_): _execution(tenant_id, list(known)) for id_, known in grouped}


async def list_executions(
    database: Database,
    tenant_id: TenantId,
    wanted: ExecutionFilter,
    *,
    before: ExecutionId | None,
    limit: int,
    now: datetime | None = None,
) -> ExecutionPage:
    """At most `limit` executions with ids below `before`, the newest first."""
    job, *rest = wanted.columns()
    below: ExecutionId | None = None
    async with database.transaction(tenant_id) as session:
        if job is None:
            rows, below = await _list_newest(session, (tenant_id, *rest, before, limit), now)
        else:
            rows = await session.fetch(_LIST_OF_JOB, tenant_id, job, *rest, before, limit, now)
    ends = {ExecutionId(row["id"]): row["finished_at"] for row in rows}
    found = await _read(database, tenant_id, ends)
    return ExecutionPage([found[each] for each in ends if each in found], below)


async def _list_newest(
    session: Session, asked: tuple[object, ...], now: datetime | None
) -> tuple[list[asyncpg.Record], ExecutionId | None]:
    """The rows of a page, and where the looking ended if that left it short."""
    limit = asked[-1]
    for scanned in SCANNED:
        rows = await session.fetch(_LIST_NEWEST, *asked, scanned, now)
        below, found = rows[0]["low"], [row for row in rows if row["id"] is not None]
        if below is None or len(found) == limit:
            return found, None
    return found, ExecutionId(below)


async def count_executions(
    database: Database, tenant_id: TenantId, wanted: ExecutionFilter, now: datetime | None = None
) -> int:
    async with database.transaction(tenant_id) as session:
        return int(await session.fetch_value(_COUNT, tenant_id, *wanted.columns(), now))


def searched(ids: Iterable[ExecutionId]) -> Iterator[tuple[ExecutionId, datetime]]:
    """Each id with the earliest end it can have had; what Foliot cannot have made is left out."""
    for each in ids:
        try:
            yield each, instant_of(each) - SLACK
        except (InvalidInput, OverflowError):
            continue


def _execution(tenant_id: TenantId, rows: Sequence[asyncpg.Record]) -> StoredExecution:
    """From the rows of one execution: attempts by their end, then the live row."""
    head = next((row for row in reversed(rows) if row["live"] or row["final"]), rows[-1])
    same = {
        name: head[name]
        for name in StoredExecution.__slots__
        if name not in _MADE and name in head.keys()  # noqa: SIM118 - a record, not a dict
    }
    return StoredExecution(
        execution_id=ExecutionId(head["id"]),
        tenant_id=tenant_id,
        status=ExecutionState(head["status"]),
        trigger=Trigger(head["trigger"]),
        labels=head["labels"] or {},
        tags=tuple(head["tags"] or ()),
        idempotency_key=head["idempotency_key"] or str(head["id"]),
        error=_error(head, rows),
        attempts=tuple(_attempt(row) for row in rows if row["worker_id"] is not None),
        **same,
    )


_MADE: Final = frozenset(
    {"status", "trigger", "labels", "tags", "idempotency_key", "error", "attempts", "tenant_id"}
)


def _error(head: asyncpg.Record, rows: Sequence[asyncpg.Record]) -> Json:
    """Of an execution in backoff, what the attempt before died of."""
    if head["status"] != ExecutionState.RETRYING:
        return head["error"]
    return next((row["error"] for row in reversed(rows) if row["error"] is not None), None)


def _attempt(row: asyncpg.Record) -> StoredAttempt:
    values: dict[str, Any] = {name: row[name] for name in StoredAttempt.__slots__}
    return StoredAttempt(**values | {"status": ExecutionState(row["status"])})
