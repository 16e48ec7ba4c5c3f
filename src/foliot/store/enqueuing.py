"""Executions that somebody asks for: trigger, enqueue, backfill, replay; each request once.

A request has an id. Whoever sends it again, after a lost answer or by mistake, gets what the first
one got, even when that is over by now; the same id with other contents is refused. The database
keeps the id in the transaction that inserts the executions: there is no time in between.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Final
from uuid import UUID

from foliot.core.errors import IdempotencyKeyReused, InvalidInput, JobNotFound
from foliot.core.ids import (
    ExecutionId,
    JobId,
    TenantId,
    microseconds,
    requested_execution,
    scheduled_execution,
)
from foliot.core.limits import Limit, key_text
from foliot.core.model import Json, Trigger
from foliot.core.storable import check_storable
from foliot.store.columns import sparse
from foliot.store.database import Database
from foliot.store.errors import StatementFailed
from foliot.store.statements import statement

_ENQUEUE: Final = statement("executions/enqueue")
_READ_ENQUEUED: Final = statement("requests/read_enqueued")

BULK_MAX: Final = 10_000
PAYLOAD_BYTES_MAX: Final = 1_048_576
LABELS_BYTES_MAX: Final = 16_384
TEXT_BYTES_MAX: Final = 1024


class Outcome(StrEnum):
    CREATED = "CREATED"
    EXISTS = "EXISTS"  # a live execution of the job has the unique key: here it is
    FILLED = "FILLED"  # the instant has had its execution: here it is
    UNSETTLED = "UNSETTLED"  # the schedule itself will come to this instant


class Absent(StrEnum):
    """Not the same as null, which is a payload."""

    ABSENT = "ABSENT"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One execution, in what it differs from its job's definition."""

    job_id: JobId
    trigger: Trigger = Trigger.ENQUEUE
    payload: Json | Absent = Absent.ABSENT
    priority: int | None = None
    run_at: datetime | None = None
    delay_seconds: float | None = None
    labels: Mapping[str, str] | None = None
    concurrency: Limit | None = None  # a key of its own, instead of the job's
    unique_key: str | None = None
    idempotency_key: str | None = None
    retry_of: ExecutionId | None = None
    trace_id: str | None = None
    execution_id: ExecutionId | None = None  # where it does not follow from the request


@dataclass(frozen=True, slots=True)
class Request:
    """Who asks, and how to know it again. `seen_at` is when this copy of it arrived.

    `contents` is equal for equal requests. Without it the executions themselves are compared, and
    what they are made of must not have changed between two copies: neither a job's limit, nor which
    job a name means, nor the trace.
    """

    tenant_id: TenantId
    route: str
    request_id: str
    seen_at: datetime
    contents: bytes | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """`replayed`: an earlier copy of the request did it."""

    execution_id: ExecutionId
    outcome: Outcome
    replayed: bool


@dataclass(frozen=True, slots=True)
class Row:
    """The columns of one execution, in the order in which the statement takes them."""

    id: UUID
    job_id: UUID
    trigger: str
    payload: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    delay_seconds: float | None = None
    instant: datetime | None = None
    scheduled_id: UUID | None = None
    rerun_id: UUID | None = None
    labels: str | None = None
    limit_key: str | None = None
    limit: int | None = None
    unique_key: str | None = None
    idempotency_key: str | None = None
    retry_of: UUID | None = None
    trace_id: str | None = None


_COLUMNS: Final = [attrgetter(column.name) for column in fields(Row)]


async def enqueue(
    database: Database,
    request: Request,
    wanted: Sequence[Wanted],
    now: datetime | None = None,
    *,
    listed_as: str | None = None,
) -> list[Enqueued]:
    """Insert one execution for each of `wanted`, all or none; the answers are in their order.

    With `listed_as`, what is wrong with one of them is told with its place in the caller's list.
    """
    rows: list[Row] = []
    for number, one in enumerate(wanted):
        try:
            rows.append(wanted_row(request, number, one))
        except InvalidInput as refused:
            raise in_list(refused, listed_as, number) from None
    return await _send(database, request, rows, now)


async def find_enqueued(
    database: Database, tenant_id: TenantId, route: str, request_id: str
) -> list[Enqueued] | None:
    """What a request got that was carried out, whatever has become of its jobs since."""
    row = await database.fetch_row(_READ_ENQUEUED, tenant_id, route, request_id)
    if row is None:
        return None
    pairs = zip(row["ids"], row["outcomes"], strict=True)
    return [Enqueued(ExecutionId(id_), Outcome(outcome), replayed=True) for id_, outcome in pairs]


async def backfill(
    database: Database,
    request: Request,
    job_id: JobId,
    instants: Sequence[datetime],
    *,
    rerun: bool = False,
    now: datetime | None = None,
) -> list[Enqueued]:
    """Insert an execution for each past instant that has none, or with `rerun` for each.

    An instant that the schedule has not come to yet is left to it.
    """
    rows = [_instant_row(request, job_id, instant, rerun) for instant in dict.fromkeys(instants)]
    return await _send(database, request, rows, now)


async def _send(
    database: Database, request: Request, rows: Sequence[Row], now: datetime | None
) -> list[Enqueued]:
    if not 1 <= len(rows) <= BULK_MAX:
        raise InvalidInput(
            f"{len(rows)} executions in one request",
            field="executions",
            hint=f"send 1 to {BULK_MAX} at a time",
        )
    _check_text(request.request_id, "idempotency_key")
    try:
        answers = await database.fetch(
            _ENQUEUE,
            request.tenant_id,
            request.route,
            request.request_id,
            request_hash(rows) if request.contents is None else request.contents,
            *columns_of(rows),
            now,
        )
    except StatementFailed as error:
        if error.sqlstate == "FL404" and error.hint is not None:
            raise JobNotFound(UUID(error.hint)) from None
        if error.sqlstate == "FL422":
            raise IdempotencyKeyReused(request.request_id) from None
        raise
    return [Enqueued(id_, Outcome(outcome), replayed) for id_, outcome, replayed in answers]


def columns_of(rows: Sequence[Row]) -> list[Sequence[object] | None]:
    """As the statements take them."""
    return [sparse(list(map(column, rows))) for column in _COLUMNS]


def request_hash(rows: Sequence[Row]) -> bytes:
    """Equal for equal requests, whenever they are sent: ids hold the time, so they do not count."""
    digest = hashlib.blake2b(digest_size=16, person=b"foliot-request")
    for column in _COLUMNS[1:]:
        digest.update(repr(list(map(column, rows))).encode())
    return digest.digest()


def wanted_row(request: Request, number: int, wanted: Wanted) -> Row:
    """One of the executions that a request asks for, as it is sent."""
    _check_times(wanted)
    for name in ("unique_key", "idempotency_key", "trace_id"):
        _check_text(getattr(wanted, name), name)
    absent = wanted.payload is Absent.ABSENT
    limit = wanted.concurrency
    return Row(
        id=wanted.execution_id or _id_of(request, number, wanted),
        job_id=wanted.job_id,
        trigger=wanted.trigger,
        payload=None if absent else check_storable(wanted.payload, "payload", PAYLOAD_BYTES_MAX),
        priority=wanted.priority,
        run_at=wanted.run_at,
        delay_seconds=wanted.delay_seconds,
        labels=_labels_text(wanted.labels),
        limit_key=key_text(limit.key) if limit else None,
        limit=limit.at_most if limit else None,
        unique_key=wanted.unique_key,
        idempotency_key=wanted.idempotency_key,
        retry_of=wanted.retry_of,
        trace_id=wanted.trace_id,
    )


def in_list(refused: InvalidInput, listed_as: str | None, number: int) -> InvalidInput:
    """The same refusal, of one among many: not `payload.a` but `executions[3].payload.a`."""
    if listed_as is None:
        return refused
    return replace(refused, field=f"{listed_as}[{number}].{refused.field or ''}".removesuffix("."))


def _id_of(request: Request, number: int, wanted: Wanted) -> ExecutionId:
    place = f"{request.route} {request.request_id} {number}"
    return requested_execution(
        request.tenant_id, wanted.job_id, wanted.trigger, place, request.seen_at
    )


def _instant_row(request: Request, job_id: JobId, instant: datetime, rerun: bool) -> Row:
    """The first backfill of an instant has one id for ever; running it again is the request's."""
    tenant, kind = request.tenant_id, Trigger.BACKFILL
    again = f"{request.route} {request.request_id}"
    return Row(
        id=requested_execution(tenant, job_id, kind, str(microseconds(instant)), instant),
        job_id=job_id,
        trigger=kind,
        instant=instant,
        scheduled_id=scheduled_execution(job_id, instant),
        rerun_id=requested_execution(tenant, job_id, kind, again, instant) if rerun else None,
    )


def _labels_text(labels: Mapping[str, str] | None) -> str | None:
    return None if labels is None else check_storable(dict(labels), "labels", LABELS_BYTES_MAX)


def _check_text(text: str | None, name: str) -> None:
    if text is not None:
        check_storable(text, name, TEXT_BYTES_MAX)


def _check_times(wanted: Wanted) -> None:
    if wanted.run_at is not None and wanted.delay_seconds is not None:
        raise InvalidInput(
            "both run_at and delay_seconds are given", field="delay_seconds", hint="give one"
        )
    if wanted.delay_seconds is not None and not 0 <= wanted.delay_seconds <= 3_153_600_000:
        raise InvalidInput(
            f"{wanted.delay_seconds} s is not a delay",
            field="delay_seconds",
            hint="use 0 to 3153600000 (a hundred years)",
        )
