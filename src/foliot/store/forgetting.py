"""What nobody needs any more is forgotten, a batch at a time.

Answers to requests after a day, workers that have been dead for a day, completion callbacks after a
month, concurrency keys that nothing names, starts that no rate looks back to. Each call is one
statement that may run on several nodes at once; a full batch means that there may be more.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.store.database import Database
from foliot.store.statements import statement

_FORGET_REQUESTS: Final = statement("requests/forget_old")
_FORGET_WORKERS: Final = statement("workers/forget_dead")
_FORGET_DELIVERIES: Final = statement("deliveries/forget_old")
_FORGET_LIMITS: Final = statement("limits/forget_unnamed")
_FORGET_STARTS: Final = statement("limits/forget_starts")

BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many went, and where to go on: None when the walk is at its end."""

    removed: int
    after: str | None


async def forget_requests(
    database: Database, now: datetime | None = None, *, batch: int = BATCH
) -> int:
    """Remove up to `batch` answers that are older than a day; how many went."""
    return await database.execute(_FORGET_REQUESTS, now, batch)


async def forget_deliveries(
    database: Database, now: datetime | None = None, *, batch: int = BATCH
) -> int:
    """Remove up to `batch` completion callbacks that are over, and older than 30 days."""
    return await database.execute(_FORGET_DELIVERIES, now, batch)


async def forget_workers(
    database: Database, now: datetime | None = None, *, batch: int = BATCH
) -> int:
    """Remove up to `batch` workers that have been dead for a day and hold nothing; how many."""
    return int(await database.fetch_value(_FORGET_WORKERS, batch, now))


async def forget_limits(
    database: Database, after: str | None = None, *, batch: int = BATCH
) -> Forgotten:
    """Look at `batch` concurrency keys from `after` on and remove those that nothing names."""
    row = await database.fetch_row(_FORGET_LIMITS, after, batch)
    removed, last = row or (0, None)
    return Forgotten(removed, last)


async def forget_starts(
    database: Database,
    after: str | None = None,
    now: datetime | None = None,
    *,
    batch: int = BATCH,
) -> Forgotten:
    """Remove up to `batch` starts that are older than the rate of their key looks back."""
    row = await database.fetch_row(_FORGET_STARTS, after, batch, now)
    removed, last = row or (0, None)
    return Forgotten(removed, last)
