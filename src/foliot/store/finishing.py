"""How attempts ended: mixed batches, fenced, each outcome whole or not at all.

What comes back tells three things apart: it was written, it was superseded (another claim holds
it, or it is over: the outcome is dropped), or the database will not take it however it is put.
One outcome that cannot be written never keeps its neighbours from it. When a commit stays
unknown, `settle` reads what became of each before it writes anything.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import msgspec

from foliot.core.fingerprint import fingerprint
from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.model import Failure, Json
from foliot.core.retry import SNOOZE_SECONDS_MAX, DeadLetterReason
from foliot.core.states import EXECUTION, ExecutionEvent, ExecutionState, advance
from foliot.core.storable import RESULT_BYTES_MAX, Storable, to_storable
from foliot.store.columns import sparse
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, StatementFailed, TransactionConflict
from foliot.store.failure_records import failure_as_text
from foliot.store.statements import statement

_FINISH: Final = statement("executions/finish")
_READ_OUTCOMES: Final = statement("executions/read_outcomes")

RESPONSE_BYTES_MAX: Final = 16 * 1024
_HELD: Final = "HELD"
# Data, integrity, limits of the server: the fault is in a row.
_SPLITTABLE: Final = ("22", "23", "54")
_TOOK_TOO_LONG: Final = "57014"
_STATE_AFTER: Final = {
    event: EXECUTION[ExecutionState.RUNNING, event]
    for state, event in EXECUTION
    if state is ExecutionState.RUNNING
}
_GIVEN_BACK: Final = frozenset(
    {ExecutionState.PENDING, ExecutionState.QUEUED, ExecutionState.WAITING}
)


class Outcome(msgspec.Struct, frozen=True):
    """The end of one attempt, and what it means for the execution.

    `delay_seconds` is how long a RETRY, SNOOZE or HOLD waits, counted by the database's clock.
    """

    execution_id: ExecutionId
    fence: int
    event: ExecutionEvent
    result: Json = None
    failure: Failure | None = None
    response: Json = None
    started_at: datetime | None = None
    delay_seconds: float = 0.0
    dead_letter: DeadLetterReason | None = None
    result_truncated: bool = False  # it was cut before it came here


@dataclass(frozen=True, slots=True)
class FinishReport:
    """What became of each outcome of a batch, by execution."""

    written: Mapping[ExecutionId, ExecutionState] = field(default_factory=dict)
    superseded: frozenset[ExecutionId] = frozenset()
    refused: Mapping[ExecutionId, str] = field(default_factory=dict)

    def __or__(self, other: "FinishReport") -> "FinishReport":
        return FinishReport(
            {**self.written, **other.written},
            self.superseded | other.superseded,
            {**self.refused, **other.refused},
        )


async def finish(
    database: Database,
    worker_id: WorkerId,
    outcomes: Sequence[Outcome],
    now: datetime | None = None,
) -> FinishReport:
    """Write a batch. If it raises, call `settle` with the same batch once the database is back."""
    # Sorted, so that two batches never wait for each other; the first word about one counts.
    batch = {outcome.execution_id: outcome for outcome in reversed(outcomes)}
    ordered = [batch[execution_id] for execution_id in sorted(batch)]
    try:
        return await _write(database, worker_id, ordered, now)
    except CommitUnknown:
        return await settle(database, worker_id, ordered, now)


async def settle(
    database: Database,
    worker_id: WorkerId,
    outcomes: Sequence[Outcome],
    now: datetime | None = None,
) -> FinishReport:
    """Write of a batch what an earlier try may not have written, after looking."""
    rows = await database.fetch(
        _READ_OUTCOMES,
        worker_id,
        [outcome.execution_id for outcome in outcomes],
        [outcome.fence for outcome in outcomes],
        now,
    )
    found: dict[ExecutionId, str | None] = {ExecutionId(row["id"]): row["status"] for row in rows}
    written: dict[ExecutionId, ExecutionState] = {}
    superseded: set[ExecutionId] = set()
    held: list[Outcome] = []
    for outcome in sorted(outcomes, key=lambda outcome: outcome.execution_id):
        status = found.get(outcome.execution_id)
        if status == _HELD:
            held.append(outcome)
        elif status is not None and is_result_of(outcome, status):
            written[outcome.execution_id] = _state_after(outcome, status)
        else:
            superseded.add(outcome.execution_id)
    report = FinishReport(written, frozenset(superseded))
    return report | await _write(database, worker_id, held, now)


def is_result_of(outcome: Outcome, status: str) -> bool:
    """Whether `status`, found under our fence, is what writing `outcome` leaves behind.

    A row that was given back may have been released or held since; whatever was asked to stop is
    CANCELLED.
    """
    state = advance(EXECUTION, ExecutionState.RUNNING, outcome.event)
    if state in _GIVEN_BACK:
        return status in _GIVEN_BACK or status == ExecutionState.CANCELLED
    return status in {state, ExecutionState.CANCELLED}


def _state_after(outcome: Outcome, status: str) -> ExecutionState:
    if status == ExecutionState.CANCELLED:
        return ExecutionState.CANCELLED
    return advance(EXECUTION, ExecutionState.RUNNING, outcome.event)


async def _write(
    database: Database, worker_id: WorkerId, batch: Sequence[Outcome], now: datetime | None
) -> FinishReport:
    """The batch, or on a refusal its halves; the one that is refused alone gets a marker."""
    if not batch:
        return FinishReport()
    try:
        return await _send(database, worker_id, batch, now)
    except TransactionConflict as conflict:
        # Fewer rows may be done in time; one alone is for the caller to try again.
        if conflict.sqlstate != _TOOK_TOO_LONG or len(batch) == 1:
            raise
    except StatementFailed as failed:
        if not (failed.sqlstate or "22").startswith(_SPLITTABLE):
            raise
        if len(batch) == 1:
            return await _write_marked(database, worker_id, batch[0], now)
    middle = len(batch) // 2
    first = await _write(database, worker_id, batch[:middle], now)
    return first | await _write(database, worker_id, batch[middle:], now)


async def _write_marked(
    database: Database, worker_id: WorkerId, outcome: Outcome, now: datetime | None
) -> FinishReport:
    """The state change without what came with it, which the database would not take."""
    marker = {"foliot": "unstorable", "reason": "the database refused it"}
    failure = outcome.failure and replace(
        outcome.failure, message="the database refused the message", detail=None, http_status=None
    )
    marked = msgspec.structs.replace(
        outcome, result=marker, response=None, failure=failure, started_at=None
    )
    try:
        return await _send(database, worker_id, [marked], now)
    except StatementFailed as failed:
        return FinishReport(refused={outcome.execution_id: failed.reason})


async def _send(
    database: Database, worker_id: WorkerId, batch: Sequence[Outcome], now: datetime | None
) -> FinishReport:
    results = [
        None if outcome.result is None else to_storable(outcome.result, RESULT_BYTES_MAX)
        for outcome in batch
    ]
    row = await database.fetch_row(
        _FINISH,
        worker_id,
        [outcome.execution_id for outcome in batch],
        [outcome.fence for outcome in batch],
        *map(sparse, _columns(batch, results)),
        now,
    )
    if row is None:
        raise AssertionError("an aggregate always answers")
    written = {outcome.execution_id: outcome for outcome in batch}
    if row["written"] < len(batch):
        written = {id_: written[id_] for id_ in row["ids"] or ()}
    cancelled = frozenset(row["cancelled"] or ())
    return FinishReport(
        {
            id_: ExecutionState.CANCELLED if id_ in cancelled else _STATE_AFTER[outcome.event]
            for id_, outcome in written.items()
        },
        frozenset(outcome.execution_id for outcome in batch) - written.keys(),
    )


def _columns(
    batch: Sequence[Outcome], results: Sequence[Storable | None]
) -> Iterator[list[object]]:
    """After ids and fences. What is as it usually is travels as null."""
    usual = ExecutionEvent.SUCCEED
    yield [None if outcome.event is usual else str(outcome.event) for outcome in batch]
    yield [result and result.text for result in results]
    yield [
        True if outcome.result_truncated or (result is not None and result.truncated) else None
        for outcome, result in zip(batch, results, strict=True)
    ]
    yield [failure_as_text(outcome.failure) for outcome in batch]
    yield [_response_text(outcome) for outcome in batch]
    yield [outcome.started_at for outcome in batch]
    yield [_delay(outcome) or None for outcome in batch]
    yield [outcome.dead_letter and str(outcome.dead_letter) for outcome in batch]
    yield [_fingerprint(outcome) for outcome in batch]


def _response_text(outcome: Outcome) -> str | None:
    if outcome.response is None:
        return None
    return to_storable(outcome.response, RESPONSE_BYTES_MAX).text


def _delay(outcome: Outcome) -> float:
    """Within a year; what is no duration (negative, not a number) is none."""
    return min(outcome.delay_seconds, SNOOZE_SECONDS_MAX) if outcome.delay_seconds > 0 else 0.0


def _fingerprint(outcome: Outcome) -> str | None:
    if outcome.dead_letter is None:
        return None
    return "none" if outcome.failure is None else fingerprint(outcome.failure)
