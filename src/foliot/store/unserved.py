"""Lanes in which executions wait for a worker that is not there."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.ids import ExecutionId
from foliot.core.serving import Lane
from foliot.store.database import Database
from foliot.store.statements import statement

_LIST_UNSERVED: Final = statement("lanes/list_unserved")

# Workers start and stop; what has waited no longer than this is no news.
WAITED_SECONDS: Final = 10.0
COUNT_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class UnservedLane:
    """`waiting` is counted up to COUNT_MAX."""

    lane: Lane
    waiting: int
    first: ExecutionId


async def list_unserved(
    database: Database, now: datetime | None = None
) -> tuple[UnservedLane, ...]:
    rows = await database.fetch(_LIST_UNSERVED, WAITED_SECONDS, COUNT_MAX, now)
    return tuple(
        UnservedLane(
            Lane(
                row["queue"],
                row["region"],
                tuple(row["requires"]),
                row["target_type"],
                row["handler"],
            ),
            row["waiting"],
            ExecutionId(row["first_id"]),
        )
        for row in rows
    )
