"""What nobody needs any more is forgotten, a batch at a time.

Answers to requests after a day, workers that have been dead for a day, concurrency keys that
nothing names. Each call is one statement that may run on several nodes at once; a full batch means
that there may be more.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.store.database import Database
from foliot.store.statements import statement

_FORGET_REQUESTS: Final = statement("requests/forget_old")
_FORGET_WORKERS: Final = statement("workers/forget_dead")
_FORGET_LIMITS: Final = statement("limits/forget_unnamed")

BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class ForgottenLimits:
    """How many went, and where to go on: None when the walk is at its end."""

    removed: int
    after: str | None


async def forget_requests(
    database: Database, now: datetime | None = None, *, batch: int = BATCH
) -> int:
    """Remove up to `batch` answers that are older than a day; how many went."""
    return await database.execute(_FORGET_REQUESTS, now, batch)


async def forget_workers(
    database: Database, now: datetime | None = None, *, batch: int = BATCH
) -> int:
    """Remove up to `batch` workers that have been dead for a day and hold nothing; how many."""
    return int(await database.fetch_value(_FORGET_WORKERS, batch, now))


async def forget_limits(
    database: Database, after: str | None = None, *, batch: int = BATCH
) -> ForgottenLimits:
    """Look at `batch` concurrency keys from `after` on and remove those that nothing names."""
    row = await database.fetch_row(_FORGET_LIMITS, after, batch)
    removed, last = row or (0, None)
    return ForgottenLimits(removed, last)
