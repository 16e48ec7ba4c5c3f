"""A limit that is new or changes also counts for what waited before it.

Rows get the keys of their limits when they are written. So when a tenant or a job gets its first
limit, that is noted in the same transaction, and schedulers walk over its rows, a page at a time:
what could be claimed waits for a slot, what runs holds one. So it is when the concurrency limit of
a job changes: only its rows tell which keys it has to be written for, or who is to be let go when
there is none any more. A second walk, later than any statement can take, finds the rows that were
being written meanwhile; while others have rows in use, there are more. Walks may be repeated and
cut short: what is done is done.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from foliot.core.ids import JobId
from foliot.core.limits import Limit, Scope, key_texts
from foliot.store.database import Database
from foliot.store.session import Session
from foliot.store.statements import statement

_NOTE_CHANGES: Final = statement("limits/note_changes")
_LIST_CHANGES: Final = statement("limits/list_changes")
_APPLY: Final = statement("limits/apply")
_END_CHANGE: Final = statement("limits/end_change")

BATCH: Final = 1000
CHANGES: Final = 20
# A statement ends after 5 s.
SETTLED_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class LimitChange:
    """A key that has its first limit since `changed_at`, or `keys:` and a job whose limit changed;
    after the last walk it is done with."""

    key: str
    changed_at: datetime
    is_last: bool


@dataclass(frozen=True, slots=True)
class AppliedPage:
    """How many rows or keys were changed, and where to go on: None when the walk is at its end.

    `passed_over`: others had rows in use. `queues`: where executions may be claimed now.
    """

    changed: int
    after: UUID | None
    passed_over: bool = False
    queues: frozenset[str] = frozenset()


async def note_changes(
    session: Session, limits: Iterable[Limit], now: datetime | None = None
) -> None:
    """Before these limits are put: those that are the first of a job or a tenant.

    A concurrency key is not noted: which rows it is for, only their payloads say.
    """
    keys = key_texts(limit for limit in limits if limit.key.scope is not Scope.KEY)
    if keys:
        await session.execute(_NOTE_CHANGES, list(keys), now)


async def note_key_limit(session: Session, job_id: JobId, now: datetime | None = None) -> None:
    """The concurrency limit of a job becomes another, or none, also under keys of requests."""
    await session.execute(_NOTE_CHANGES, [f"keys:{job_id}"], now)


async def list_changes(
    database: Database, now: datetime | None = None, *, limit: int = CHANGES
) -> list[LimitChange]:
    """Those whose first walk is due, or their last; the longest not walked first."""
    rows = await database.fetch(_LIST_CHANGES, now, SETTLED_SECONDS, limit)
    return [LimitChange(row["key"], row["changed_at"], row["is_last"]) for row in rows]


async def apply_page(
    database: Database,
    change: LimitChange,
    after: UUID | None = None,
    *,
    batch: int = BATCH,
    now: datetime | None = None,
) -> AppliedPage:
    row = await database.fetch_row(_APPLY, change.key, after, batch, now)
    changed, last, passed_over, queues = row or (0, None, False, None)
    return AppliedPage(changed, last, passed_over, frozenset(queues or ()))


async def end_change(
    database: Database,
    change: LimitChange,
    now: datetime | None = None,
    *,
    passed_over: bool = False,
) -> None:
    """The walk is over; one that was changed meanwhile, or has left rows out, is walked again."""
    done = change.is_last and not passed_over
    await database.execute(_END_CHANGE, change.key, change.changed_at, done, now)
