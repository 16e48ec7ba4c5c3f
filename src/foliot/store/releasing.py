"""Rows whose time has come, or whose predecessor is over, become claimable.

Several schedulers may do this at once: what one has released is no longer there for the others.
Nothing here is counted or remembered; a pass that is lost is made up by the next.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from foliot.core.ids import ExecutionId, JobId
from foliot.store.database import Database
from foliot.store.statements import statement

_RELEASE_DUE: Final = statement("executions/release_due")
_RELEASE_OVERLAPS: Final = statement("executions/release_overlaps")
_READ_NEXT_RELEASE: Final = statement("executions/read_next_release")

BATCH: Final = 1000
JOBS: Final = 500
# A row is committed at most this long after the time it says it is available: a statement ends
# after 5 s. What was told an even earlier time is found by the look at everything.
LATEST_COMMIT: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class ReleaseReport:
    """What one batch did. `held` went to wait for a slot; `seen` were due, others may have them."""

    seen: int
    released: int
    held: int
    moment: datetime
    queues: frozenset[str] = field(default=frozenset(), compare=False)  # of what was due

    @property
    def low(self) -> datetime:
        """After a batch that was not full: below this only rows are left that came late."""
        return self.moment - LATEST_COMMIT


@dataclass(frozen=True, slots=True)
class OverlapReport:
    released: tuple[ExecutionId, ...]
    after: JobId | None  # where to go on; None when the walk is at its end
    queues: frozenset[str] = field(default=frozenset(), compare=False)  # of what was released


async def release_due(
    database: Database,
    low: datetime | None = None,
    *,
    batch: int = BATCH,
    now: datetime | None = None,
) -> ReleaseReport:
    """Let go what is due since `low`, oldest first; without it, whatever is due.

    Pass the `low` of the last batch that was not full, and None every ten seconds.
    """
    row = await database.fetch_row(_RELEASE_DUE, low, batch, now)
    if row is None:
        raise AssertionError("the function always answers")
    queues = frozenset(row["queues"] or ())
    return ReleaseReport(row["seen"], row["released"], row["held"], row["moment"], queues)


async def release_overlaps(
    database: Database,
    after: JobId | None = None,
    *,
    jobs: int = JOBS,
    now: datetime | None = None,
) -> OverlapReport:
    """Start the oldest held execution of each job that has nothing under way any more."""
    row = await database.fetch_row(_RELEASE_OVERLAPS, after, jobs, now)
    released, last, queues = row or ((), None, None)
    return OverlapReport(tuple(released), last, frozenset(queues or ()))


async def next_release_seconds(
    database: Database, after: datetime, now: datetime | None = None
) -> float | None:
    """How long until the first row is due that is due later than `after`; None if none waits."""
    found: float | None = await database.fetch_value(_READ_NEXT_RELEASE, after, now)
    return found
