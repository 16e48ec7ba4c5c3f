"""The days of the history and of the logs, made ahead: a finish finds the partition of its day
waiting.

Days are days of UTC, named `attempts_YYYYMMDD` and `execution_logs_YYYYMMDD`. If nobody made one in
time, its rows go to the default partition, so that no finish ever fails for it; they move to their
own day when that is made. A day with more of them than `MOVED_ROWS` stays in the default partition,
where history finds it just as well: moving it would make finishes wait. Each day is a transaction
of its own.
"""

import logging
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from foliot.store.session import Session
from foliot.store.statements import statement

log = logging.getLogger(__name__)

_READ_MISSING_DAYS: Final = statement("partitions/read_missing_days")
_CREATE_DAY: Final = statement("partitions/create_day")

DAYS_AHEAD: Final = 7
# A quarter of a second of moving on a small machine, during which a finish that goes to the default
# partition waits.
MOVED_ROWS: Final = 50_000


@dataclass(frozen=True)
class PartitionsReport:
    """The days that have a partition now, and those left in the default partition."""

    created: tuple[date, ...]
    crowded: tuple[date, ...]


async def provide_partitions(
    session: Session, now: datetime | None = None, days_ahead: int = DAYS_AHEAD
) -> PartitionsReport:
    """Make what is missing from yesterday to `days_ahead`, and for every row that has no day.

    Safe on any number of nodes at once. A lock that cannot be had soon raises
    `TransactionConflict`: what was made stays, and the rest is made next time.
    """
    created: set[date] = set()
    crowded: set[date] = set()
    for row in await session.fetch(_READ_MISSING_DAYS, now, days_ahead):
        made = await session.fetch_value(_CREATE_DAY, row["parent"], row["day"], MOVED_ROWS)
        (created if made else crowded).add(row["day"])
    if crowded:
        days = ", ".join(map(str, sorted(crowded)))
        log.warning("history of %s stays in the default partition: too many rows to move", days)
    return PartitionsReport(tuple(sorted(created - crowded)), tuple(sorted(crowded)))
