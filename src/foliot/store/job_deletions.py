"""Deletions that nobody finished.

Deleting a job cancels what waits of it page by page, and whoever does that may die in between. The
job is DELETED from the first page on, so what still waits can be found by it and cancelled by
anyone. What runs may finish.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.ids import JobId
from foliot.store.database import Database
from foliot.store.statements import statement

_CANCEL_DELETED: Final = statement("jobs/cancel_deleted")

STEPS: Final = 1000
BATCH: Final = 2000


@dataclass(frozen=True, slots=True)
class DeletionReport:
    """How many were cancelled, and where to go on: None when the walk is at its end."""

    cancelled: int
    after: JobId | None


async def finish_deletions(
    database: Database,
    after: JobId | None = None,
    *,
    steps: int = STEPS,
    batch: int = BATCH,
    now: datetime | None = None,
) -> DeletionReport:
    """Look at up to `steps` jobs that have live executions, from `after` on, up to the first that
    is deleted and has some that wait; cancel up to `batch` of them."""
    row = await database.fetch_row(_CANCEL_DELETED, after, steps, batch, now)
    cancelled, last = row or (0, None)
    return DeletionReport(cancelled, last)
