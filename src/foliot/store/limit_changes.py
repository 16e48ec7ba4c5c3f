"""A limit that is new also counts for what waited before it.

Rows get the keys of their limits when they are written. So when a tenant or a job gets its first
limit, that is noted in the same transaction, and schedulers walk over its rows, a page at a time:
what could be claimed waits for a slot, what runs holds one. A second walk, later than any
statement can take, finds the rows that were being written meanwhile. Walks may be repeated and cut
short: what is done is done.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

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
    """A key that has its first limit since `changed_at`; after the last walk it is done with."""

    key: str
    changed_at: datetime
    is_last: bool


@dataclass(frozen=True, slots=True)
class AppliedPage:
    """How many rows got the key, and where to go on: None when the walk is at its end."""

    changed: int
    after: UUID | None


async def note_changes(
    session: Session, limits: Iterable[Limit], now: datetime | None = None
) -> None:
    """Before these limits are put: those that are the first of a job or a tenant.

    A concurrency key is not noted: which rows it is for, only their payloads say.
    """
    keys = key_texts(limit for limit in limits if limit.key.scope is not Scope.KEY)
    if keys:
        await session.execute(_NOTE_CHANGES, list(keys), now)


async def list_changes(
    database: Database, now: datetime | None = None, *, limit: int = CHANGES
) -> list[LimitChange]:
    """Those whose first walk is due, or their last."""
    rows = await database.fetch(_LIST_CHANGES, now, SETTLED_SECONDS, limit)
    return [LimitChange(row["key"], row["changed_at"], row["is_last"]) for row in rows]


async def apply_page(
    database: Database, change: LimitChange, after: UUID | None = None, *, batch: int = BATCH
) -> AppliedPage:
    row = await database.fetch_row(_APPLY, change.key, after, batch)
    changed, last = row or (0, None)
    return AppliedPage(changed, last)


async def end_change(database: Database, change: LimitChange, now: datetime | None = None) -> None:
    """The walk is over; one that was changed meanwhile is walked again."""
    await database.execute(_END_CHANGE, change.key, change.changed_at, change.is_last, now)
