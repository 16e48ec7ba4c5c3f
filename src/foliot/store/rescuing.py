"""Executions in dead hands: found, judged by the core's rules, put back or ended.

Three steps: list what is lost, decide, apply. A row that finished or was claimed anew between them
is left alone, because applying repeats state, fence and owner. Bury the silent workers first
(`workers.bury_silent`): once DEAD, no heartbeat can contradict what is decided here.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg

from foliot.core.fingerprint import fingerprint
from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.model import ErrorType, Failure, RetryPolicy
from foliot.core.poison import QueueAgain, after_death, death_of
from foliot.core.retry import DeadLetterReason, GiveUp, Retry, decide, event_of
from foliot.core.states import ExecutionEvent, ExecutionState
from foliot.store.database import Database
from foliot.store.definitions import retry_policy_from_json
from foliot.store.errors import StatementFailed, TransactionConflict, may_be_a_row
from foliot.store.failure_records import failure_as_text
from foliot.store.statements import Statement, statement
from foliot.store.workers import REMOTE

log = logging.getLogger(__name__)

_LIST_LEFT: Final = statement("executions/list_left")
_LIST_LOST: Final = statement("executions/list_lost")
_LIST_OVERDUE: Final = statement("executions/list_overdue")
_RESCUE: Final = statement("executions/rescue")

PAGE_ROWS: Final = 500
_FIRST: Final = UUID(int=0)
WORKER_LOST: Final = Failure(ErrorType.WORKER_LOST, "the worker died")
TIMED_OUT: Final = Failure(ErrorType.TIMEOUT, "its worker did not end it in time")
CANCELLED: Final = Failure(ErrorType.CANCELLED, "its worker did not end it in time")
NOT_TOLD: Final = "its target took it over and did not tell its end in time"


@dataclass(frozen=True, slots=True)
class Lost:
    """The facts about an execution that its worker does not look after."""

    execution_id: ExecutionId
    fence: int
    worker_id: WorkerId
    claimed_at: datetime
    attempt_number: int
    crash_count: int
    run_alone: bool
    started: bool
    cancel_requested: bool
    retry_policy: RetryPolicy


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of it. A `crash_count` sends it to a child process of its own.

    `started_at` is when it began, as far as is known: of what is begun within a second of its
    claim, the time of the claim.
    """

    execution_id: ExecutionId
    fence: int
    worker_id: WorkerId
    event: ExecutionEvent
    failure: Failure
    crash_count: int | None = None
    delay_seconds: float = 0.0
    dead_letter: DeadLetterReason | None = None
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RescueReport:
    """What was listed, and what of it was changed; the rest had moved on by itself."""

    listed: int = 0
    changed: dict[ExecutionId, ExecutionState] = field(default_factory=dict)


def judge_lost(lost: Lost) -> Verdict:
    """Its worker died."""
    if lost.cancel_requested:
        return _verdict(lost, ExecutionEvent.CANCEL, WORKER_LOST)
    death = death_of(
        said_begun=lost.started,
        run_alone=lost.run_alone,
        fence=lost.fence,
        attempt_number=lost.attempt_number,
    )
    decision = after_death(lost.retry_policy, lost.attempt_number, lost.crash_count, death)
    if isinstance(decision, GiveUp):
        return _verdict(lost, ExecutionEvent.FAIL, WORKER_LOST, dead_letter=decision.reason)
    if isinstance(decision, QueueAgain):
        event = ExecutionEvent.HAND_BACK if decision.give_back else ExecutionEvent.LOSE
        return _verdict(lost, event, WORKER_LOST)
    return _verdict(lost, ExecutionEvent.LOSE, WORKER_LOST, crash_count=decision.crash_count)


def judge_overdue(lost: Lost, chance: float) -> Verdict:
    """Its worker lives and lets it run on; `chance` in [0, 1) spreads the retry."""
    failure = CANCELLED if lost.cancel_requested else TIMED_OUT
    if lost.worker_id == REMOTE:
        failure = replace(failure, message=NOT_TOLD)
    if lost.cancel_requested:
        return _verdict(lost, ExecutionEvent.CANCEL, failure)
    decision = decide(lost.retry_policy, lost.attempt_number, failure, chance=chance)
    return _verdict(
        lost,
        event_of(decision, failure),
        failure,
        delay_seconds=decision.delay_seconds if isinstance(decision, Retry) else 0.0,
        dead_letter=decision.reason if isinstance(decision, GiveUp) else None,
    )


async def rescue_lost(
    database: Database, page_rows: int = PAGE_ROWS, now: datetime | None = None
) -> RescueReport:
    """All that dead workers hold, to the end. It walks over all hands: while a snapshot is pinned,
    over all that they have held since."""
    return await _page_through(database, _LIST_LOST, (page_rows,), judge_lost, now)


async def rescue_left(
    database: Database, page_rows: int = PAGE_ROWS, now: datetime | None = None
) -> RescueReport:
    """What workers hold that have died within ten minutes, to the end."""
    return await _page_through(database, _LIST_LEFT, (page_rows, now), judge_lost, now)


async def end_overdue(
    database: Database,
    chance: Callable[[], float],
    page_rows: int = PAGE_ROWS,
    now: datetime | None = None,
) -> RescueReport:
    """All that runs past its timeout, its grace and five seconds more."""

    def judge(lost: Lost) -> Verdict:
        return judge_overdue(lost, chance())

    return await _page_through(database, _LIST_OVERDUE, (page_rows, now), judge, now)


async def list_lost(database: Database, limit: int, after: Lost | None = None) -> tuple[Lost, ...]:
    """A page of what dead workers hold, in the order of worker and execution."""
    return await _list(database, _LIST_LOST, (limit,), after)


async def apply(
    database: Database, verdicts: Sequence[Verdict], now: datetime | None = None
) -> dict[ExecutionId, ExecutionState]:
    """The new state of each that was still as it had been seen; the others are not changed."""
    # Sorted, so that two rescuers never wait for each other.
    batch = sorted(verdicts, key=lambda verdict: verdict.execution_id)
    rows = await database.fetch(
        _RESCUE,
        [verdict.execution_id for verdict in batch],
        [verdict.fence for verdict in batch],
        [verdict.worker_id for verdict in batch],
        [str(verdict.event) for verdict in batch],
        [verdict.crash_count for verdict in batch],
        [failure_as_text(verdict.failure) for verdict in batch],
        [verdict.started_at for verdict in batch],
        [verdict.delay_seconds for verdict in batch],
        [verdict.dead_letter and str(verdict.dead_letter) for verdict in batch],
        [fingerprint(verdict.failure) if verdict.dead_letter else None for verdict in batch],
        now,
    )
    return {ExecutionId(row["id"]): ExecutionState(row["status"]) for row in rows}


async def _page_through(
    database: Database,
    listing: Statement,
    arguments: tuple[object, ...],
    judge: Callable[[Lost], Verdict],
    now: datetime | None,
) -> RescueReport:
    """Keyset pages: a row that cannot be changed now is passed, not met again and again."""
    listed, changed = 0, dict[ExecutionId, ExecutionState]()
    page = await _list(database, listing, arguments, None)
    while page:
        listed += len(page)
        changed |= await _apply_in_parts(database, [judge(lost) for lost in page], now)
        page = await _list(database, listing, arguments, page[-1])
    return RescueReport(listed, changed)


async def _apply_in_parts(
    database: Database, verdicts: Sequence[Verdict], now: datetime | None
) -> dict[ExecutionId, ExecutionState]:
    """One that the database refuses is found by halving, told, and left for the next pass."""
    try:
        return await apply(database, verdicts, now)
    except (StatementFailed, TransactionConflict) as failure:
        if not may_be_a_row(failure):
            raise
        if len(verdicts) == 1:
            log.warning("execution %s cannot be rescued: %s", verdicts[0].execution_id, failure)
            return {}
    middle = len(verdicts) // 2
    first = await _apply_in_parts(database, verdicts[:middle], now)
    return first | await _apply_in_parts(database, verdicts[middle:], now)


async def _list(
    database: Database, listing: Statement, arguments: tuple[object, ...], after: Lost | None
) -> tuple[Lost, ...]:
    key = (after.worker_id, after.execution_id) if after else (_FIRST, _FIRST)
    return tuple(_lost(row) for row in await database.fetch(listing, *key, *arguments))


def _lost(row: asyncpg.Record) -> Lost:
    return Lost(
        execution_id=ExecutionId(row["id"]),
        fence=row["fence"],
        worker_id=WorkerId(row["worker_id"]),
        claimed_at=row["claimed_at"],
        attempt_number=row["attempt_number"],
        crash_count=row["crash_count"],
        run_alone=row["run_alone"],
        started=row["started"],
        cancel_requested=row["cancel_requested_at"] is not None,
        retry_policy=read_policy(row["retry_policy"]),
    )


def read_policy(written: object) -> RetryPolicy:
    """The policy of the job's version; one that cannot be read here is the default."""
    if not isinstance(written, dict):
        return RetryPolicy()
    try:
        return retry_policy_from_json(written)
    except (TypeError, ValueError):
        return RetryPolicy()


def _verdict(
    lost: Lost,
    event: ExecutionEvent,
    failure: Failure,
    *,
    crash_count: int | None = None,
    delay_seconds: float = 0.0,
    dead_letter: DeadLetterReason | None = None,
) -> Verdict:
    return Verdict(
        lost.execution_id,
        lost.fence,
        lost.worker_id,
        event,
        failure,
        crash_count,
        delay_seconds,
        dead_letter,
        lost.claimed_at if lost.started and event is not ExecutionEvent.HAND_BACK else None,
    )
