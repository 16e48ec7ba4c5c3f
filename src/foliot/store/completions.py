"""Jobs that follow others: their parents' ends are told to them, and they fire, once for each.

The end of a parent's execution leaves a completion for each child, in its own transaction. Telling
and firing is one transaction under the child's lock: whoever comes second finds nothing to tell,
and a node that dies in between has done nothing. The rule is the core's.
"""

import json
import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import asyncpg

from foliot.core.ids import ExecutionId, JobId, after_execution
from foliot.core.model import Schedule, SkipReason
from foliot.core.schedule.after import Completion, Fire, decide, is_missed
from foliot.core.states import ExecutionState, JobState
from foliot.store.database import Database
from foliot.store.definitions import schedule_from_json
from foliot.store.errors import (
    DatabaseError,
    StatementFailed,
    TransactionConflict,
    may_be_a_row,
)
from foliot.store.session import Session
from foliot.store.statements import statement

log = logging.getLogger(__name__)

_READ_NEWS: Final = statement("dependents/read_news")
_GATHER: Final = statement("dependents/gather")
_FOLLOW: Final = statement("dependents/follow")

ROWS: Final = 500
# An end is committed at most this long after the time it says: a statement ends after 5 s.
LATEST_COMMIT: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Child:
    """A job that has been told of something, as it is under its lock."""

    job_id: JobId
    status: JobState
    schedule: Schedule
    completions: tuple[Completion, ...]
    now: datetime


@dataclass(frozen=True, slots=True)
class ChildFire:
    """What its parents' ends come to: an execution, or a skip for a reason."""

    job_id: JobId
    execution_id: ExecutionId
    instant: datetime
    reason: SkipReason | None = None


@dataclass(frozen=True, slots=True)
class News:
    """Whether anything is to be told. `low`: what is older came late."""

    waiting: bool
    moment: datetime

    @property
    def low(self) -> datetime:
        return self.moment - LATEST_COMMIT


@dataclass(frozen=True, slots=True)
class FollowReport:
    """What one page did; the children in `fired` have an execution that started or is held.
    `refused` was a page by itself, and nothing of it was done."""

    told: int = 0
    fired: tuple[JobId, ...] = ()
    skipped: tuple[JobId, ...] = ()
    full: bool = False
    refused: tuple[tuple[JobId, DatabaseError], ...] = ()


async def read_news(
    database: Database, low: datetime | None = None, now: datetime | None = None
) -> News:
    """A cheap look, without a lock. Pass the `low` of the last, and None every ten seconds."""
    row = await database.fetch_row(_READ_NEWS, low, now)
    if row is None:
        raise AssertionError("the function always answers")
    return News(row["news"], row["moment"])


async def follow(
    database: Database,
    low: datetime | None = None,
    *,
    rows: int = ROWS,
    unfit: Collection[JobId] = (),
    now: datetime | None = None,
    again: bool = False,
) -> FollowReport:
    """Tell a page of completions to their children and fire those that have waited for them.

    A child that the server refuses is found by halving the page, and told about: pass it as `unfit`
    for a while, and it keeps no other waiting. One that took too long is tried `again` first: the
    server may have stood still.
    """
    found: list[asyncpg.Record] = []
    try:
        async with database.transaction() as session:
            found = await session.fetch(_GATHER, low, rows, None, list(unfit), now)
            active = [child for child in _children(found) if child.status is JobState.ACTIVE]
            fires = [fire for child in active if (fire := _due(child, SkipReason.MISFIRE))]
            report = await _fire(session, fires, now)
    except (StatementFailed, TransactionConflict) as failure:
        if not may_be_a_row(failure) or (rows == 1 and not found):
            raise
        if len(found) == 1 and not again and isinstance(failure, TransactionConflict):
            return await follow(database, low, rows=rows, unfit=unfit, now=now, again=True)
        if len(found) == 1:
            return FollowReport(full=True, refused=((found[0]["child_id"], failure),))
        half = await follow(database, low, rows=rows // 2, unfit=unfit, now=now)
        return replace(half, full=True)
    full = bool(found) and found[0]["read_rows"] >= rows
    return replace(report, told=len(found), full=full)


async def settle_child(
    session: Session, job_id: JobId, now: datetime, cause: SkipReason, *, runs: bool = True
) -> FollowReport:
    """Under the job's lock, before it changes or when it goes on: fire what its parents' ends have
    come to by now. What is too late is skipped for `cause`, and everything unless it `runs`."""
    children = _children(await session.fetch(_GATHER, None, 0, job_id, [], now))
    fires = [fire for child in children if (fire := _due(child, cause))]
    if not runs:
        fires = [replace(fire, reason=cause) for fire in fires]
    return await _fire(session, fires, now)


def _due(child: Child, cause: SkipReason) -> ChildFire | None:
    """What its parents' ends come to, if they come to anything."""
    after = child.schedule.after
    decision = None if after is None else decide(after, child.completions)
    if not isinstance(decision, Fire):
        return None
    missed = is_missed(child.schedule.misfire_policy, decision, child.now)
    return ChildFire(
        child.job_id,
        after_execution(child.job_id, decision.parents, decision.completed_at),
        decision.completed_at,
        cause if missed else None,
    )


async def _fire(session: Session, fires: Sequence[ChildFire], now: datetime | None) -> FollowReport:
    if not fires:
        return FollowReport()
    rows = await session.fetch(
        _FOLLOW,
        [fire.job_id for fire in fires],
        [fire.execution_id for fire in fires],
        [fire.instant for fire in fires],
        [fire.reason and fire.reason.value for fire in fires],
        now,
    )
    return FollowReport(
        fired=tuple(row["child_id"] for row in rows if row["outcome"] != "SKIP"),
        skipped=tuple(row["child_id"] for row in rows if row["outcome"] == "SKIP"),
    )


def _children(rows: Iterable[asyncpg.Record]) -> list[Child]:
    """A schedule that cannot be read here is another version's: what its job is told is kept."""
    children = []
    for row in rows:
        try:
            children.append(_child(row))
        except (KeyError, TypeError, ValueError):
            log.warning("job %s follows others in a way that is not known here", row["child_id"])
    return children


def _child(row: asyncpg.Record) -> Child:
    told = zip(
        row["parent_ids"] or (),
        row["execution_ids"] or (),
        row["statuses"] or (),
        row["finished_ats"] or (),
        strict=True,
    )
    return Child(
        job_id=row["child_id"],
        status=JobState(row["child_status"]),
        schedule=_schedule(row["schedule"]),
        completions=tuple(
            Completion(parent, execution, ExecutionState(status), at)
            for parent, execution, status, at in told
        ),
        now=row["moment"],
    )


@lru_cache(maxsize=4096)
def _schedule(written: str) -> Schedule:
    return schedule_from_json(json.loads(written))
