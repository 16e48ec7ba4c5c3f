"""Dead letters run again, and so does whatever else is over: as a new execution that names the old.

A dead letter is replayed once, however many ask for it, at once or one after the other: its row
decides, in the transaction that inserts the execution. Whoever comes second gets the first one's.
The id follows from the letter. The new execution is of its job's current version, for the time that
the old one was for; a payload that came with a request stays one that did, and what the job
itself says is read anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

import asyncpg

from foliot.core.concurrency_keys import resolve_key
from foliot.core.errors import (
    DeadLetterClosed,
    DeadLetterNotFound,
    FoliotError,
    InvalidInput,
    JobNotFound,
)
from foliot.core.ids import ExecutionId, TenantId, replayed_execution
from foliot.core.limits import Limit, key_limit
from foliot.core.model import ConcurrencyLimit, Json, Trigger
from foliot.core.states import ExecutionState
from foliot.store.database import Database
from foliot.store.enqueuing import (
    Absent,
    Request,
    Row,
    Wanted,
    columns_of,
    find_enqueued,
    wanted_row,
)
from foliot.store.errors import StatementFailed, TransactionConflict
from foliot.store.execution_rows import searched
from foliot.store.statements import statement

_READ_REPLAYABLE: Final = statement("dead_letters/read_replayable")
_READ_ENDED: Final = statement("executions/read_ended")
_REPLAY: Final = statement("dead_letters/replay")

# Each time fewer letters are open.
_TRIES: Final = 5
_ROUTE: Final = "replay"
_NO_JOB: Final = "FL404"


class Asker(StrEnum):
    """On whose account: a person's, for a letter or for an execution; or the job's own."""

    REPLAY = "REPLAY"
    RETRY = "RETRY"
    POLICY = "POLICY"

    @property
    def trigger(self) -> Trigger:
        return Trigger.RETRY if self is Asker.RETRY else Trigger.REPLAY


@dataclass(frozen=True, slots=True)
class Replay:
    """A dead letter to run again. A payload takes the place of its own."""

    letter_id: ExecutionId
    payload: Json | Absent = Absent.ABSENT
    delay_seconds: float | None = None
    trace_id: str | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """`created`: by this very call; otherwise somebody had replayed the letter before."""

    execution_id: ExecutionId
    created: bool


@dataclass(slots=True)
class ReplayReport:
    """By letter, what it was replayed as or why not; and who may want to hear of it."""

    replayed: dict[ExecutionId, Replayed] = field(default_factory=dict)
    refused: dict[ExecutionId, FoliotError] = field(default_factory=dict)
    queues: set[str] = field(default_factory=set)
    limited: bool = False


async def replay(
    database: Database,
    tenant_id: TenantId,
    replays: Sequence[Replay],
    asker: Asker = Asker.REPLAY,
    now: datetime | None = None,
) -> ReplayReport:
    """Run each letter again that is open and whose job is there; all of these at once."""
    report = ReplayReport()
    left = {each.letter_id: each for each in replays}
    for _ in range(_TRIES):
        rows = await _read(database, tenant_id, sorted(left))
        ready = _sort_out(tenant_id, left, rows, asker, report)
        if not ready or await _send(database, tenant_id, ready, report, now):
            return report
        left = {letter_id: left[letter_id] for letter_id in ready}
    raise TransactionConflict("others replay the same dead letters", "40001", _REPLAY.name)


async def retry_ended(
    database: Database,
    tenant_id: TenantId,
    wanted: Replay,
    mark: str,
    now: datetime | None = None,
) -> ReplayReport | None:
    """Run an execution again that is over and has no dead letter; None if there is no such one.

    Every request makes another one; a copy of it, known by its `mark`, gets what the first made,
    also if that could not be made any more.
    """
    try:
        return await _retry_ended(database, tenant_id, wanted, mark, now)
    except (InvalidInput, JobNotFound):
        made = await find_enqueued(database, tenant_id, _ROUTE, mark)
        if made is None:
            raise
    report = ReplayReport()
    report.replayed[wanted.letter_id] = Replayed(made[0].execution_id, created=True)
    return report


async def _retry_ended(
    database: Database, tenant_id: TenantId, wanted: Replay, mark: str, now: datetime | None
) -> ReplayReport | None:
    since = dict(searched([wanted.letter_id])).get(wanted.letter_id)
    place = (tenant_id, wanted.letter_id, since, now)
    ended = await database.fetch_row(_READ_ENDED, *place) if since else None
    if ended is None:
        return None
    if ended["queue"] is None:
        raise JobNotFound(ended["job_id"])
    again = _wanted(tenant_id, wanted, ended, Asker.RETRY)
    request = Request(tenant_id, _ROUTE, mark, ended["now"])
    columns = columns_of([wanted_row(request, 0, again)])
    times = [ended["scheduled_time"]]
    try:
        (made,) = await database.fetch(_REPLAY, tenant_id, [], times, mark, *columns, now)
    except StatementFailed as error:
        if error.sqlstate == _NO_JOB:
            raise JobNotFound(ended["job_id"]) from None
        raise
    report = ReplayReport(queues={ended["queue"]}, limited=ended["limited"])
    report.replayed[wanted.letter_id] = Replayed(ExecutionId(made["execution_id"]), created=True)
    return report


@dataclass(frozen=True, slots=True)
class _Ready:
    row: Row
    scheduled_time: datetime
    queue: str
    limited: bool


async def _read(
    database: Database, tenant_id: TenantId, letter_ids: Sequence[ExecutionId]
) -> dict[ExecutionId, asyncpg.Record]:
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(_READ_REPLAYABLE, tenant_id, letter_ids)
    return {ExecutionId(row["id"]): row for row in rows}


def _sort_out(
    tenant_id: TenantId,
    left: Mapping[ExecutionId, Replay],
    rows: Mapping[ExecutionId, asyncpg.Record],
    asker: Asker,
    report: ReplayReport,
) -> dict[ExecutionId, _Ready]:
    """Those that can be replayed, in the order of their ids; the report has all others."""
    ready: dict[ExecutionId, _Ready] = {}
    for letter_id in sorted(left):
        row = rows.get(letter_id)
        if row is not None and row["replayed_as"] is not None:
            known = ExecutionId(row["replayed_as"])
            report.replayed[letter_id] = Replayed(known, created=False)
            continue
        try:
            ready[letter_id] = _ready(tenant_id, left[letter_id], row, asker)
        except FoliotError as refusal:
            report.refused[letter_id] = refusal
    return ready


def _ready(
    tenant_id: TenantId, wanted: Replay, letter: asyncpg.Record | None, asker: Asker
) -> _Ready:
    if letter is None:
        raise DeadLetterNotFound(wanted.letter_id)
    if letter["discard_reason"] is not None:
        raise DeadLetterClosed(wanted.letter_id, f"was discarded: {letter['discard_reason']}")
    if letter["queue"] is None:
        raise JobNotFound(letter["job_id"])
    if asker is Asker.POLICY and not letter["is_automatic"]:
        raise InvalidInput("its job no longer asks for it", field="auto_replay_after_seconds")
    again = _wanted(tenant_id, wanted, letter, asker)
    request = Request(tenant_id, _ROUTE, str(wanted.letter_id), letter["failed_at"])
    return _Ready(
        wanted_row(request, 0, again), letter["scheduled_time"], letter["queue"], letter["limited"]
    )


async def _send(
    database: Database,
    tenant_id: TenantId,
    ready: Mapping[ExecutionId, _Ready],
    report: ReplayReport,
    now: datetime | None,
) -> bool:
    """Whether it was done. If not, a letter is closed by now, or a job gone: nothing was."""
    letter_ids = list(ready)
    times = [each.scheduled_time for each in ready.values()]
    columns = columns_of([each.row for each in ready.values()])
    # A letter is replayed once, so no other request has its id for a key.
    key = str(letter_ids[0])
    try:
        made = await database.fetch(_REPLAY, tenant_id, letter_ids, times, key, *columns, now)
    except StatementFailed as error:
        if error.sqlstate == _NO_JOB:
            return False
        raise
    for row in made:
        letter_id = ExecutionId(row["dead_letter_id"])
        report.replayed[letter_id] = Replayed(ExecutionId(row["execution_id"]), created=True)
        report.queues.add(ready[letter_id].queue)
        report.limited = report.limited or ready[letter_id].limited
    return bool(made)


def _wanted(tenant_id: TenantId, wanted: Replay, old: asyncpg.Record, asker: Asker) -> Wanted:
    """What succeeded has used its idempotency key; all else goes on with it."""
    payload = wanted.payload
    if payload is Absent.ABSENT and not old["payload_is_jobs"]:
        payload = old["payload"]
    succeeded = old.get("status") == ExecutionState.SUCCEEDED
    own_id = None
    if old.get("failed_at") is not None:
        own_id = replayed_execution(wanted.letter_id, old["failed_at"])
    return Wanted(
        old["job_id"],
        asker.trigger,
        payload=payload,
        priority=old["priority"],
        delay_seconds=wanted.delay_seconds,
        labels=old["labels"],
        concurrency=_concurrency(tenant_id, old, payload),
        idempotency_key=None if succeeded else old["idempotency_key"] or str(wanted.letter_id),
        retry_of=wanted.letter_id,
        trace_id=wanted.trace_id,
        execution_id=own_id,
    )


def _concurrency(tenant_id: TenantId, old: asyncpg.Record, payload: Json | Absent) -> Limit | None:
    """The key that came with its request; or else what its job makes of the payload now."""
    limit = ConcurrencyLimit(**(old["concurrency"] or {}))
    if limit.limit is None:
        return None
    key, template = _given_key(tenant_id, old), limit.key or ""
    if key is None and "${" in template:
        key = resolve_key(template, old["job_payload"] if payload is Absent.ABSENT else payload)
    return None if key is None else key_limit(tenant_id, key, limit.limit)


def _given_key(tenant_id: TenantId, old: asyncpg.Record) -> str | None:
    """None if it was under the one of its job as that was then: that may be another now."""
    if old["limit_key"] is None:
        return None
    key: str = old["limit_key"].removeprefix(f"key:{tenant_id}:")
    try:
        made = resolve_key(old["template"] or "", old["payload"])
    except InvalidInput:
        return key
    return None if key == made else key
