"""Concurrency limits: rows that wait for a slot go on as slots come free.

Who holds a slot is counted from rows, under a lock for each key, so that a limit is kept whatever
crashes. Rows are looked at by the list of keys they wait under: how many wait under a full key
does not matter. One call looks at a page of lists; `after` of the answer is where the next begins.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.ids import ExecutionId
from foliot.core.limits import Limit, LimitKey, key_text
from foliot.store.database import Database
from foliot.store.session import Session
from foliot.store.statements import statement

_ADMIT_HELD: Final = statement("limits/admit_held")
_PUT_LIMITS: Final = statement("limits/put_limits")

# A page takes at most four locks a group: far from the 6,400 that a default server has in all.
STEPS: Final = 1000
GROUPS: Final = 100
BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Place:
    """Where a walk over the waiting lists goes on."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AdmitReport:
    """Who may be claimed now, and where to go on: None when the walk is at its end."""

    admitted: tuple[ExecutionId, ...]
    after: Place | None


async def admit_held(
    database: Database,
    after: Place | None = None,
    *,
    batch: int = BATCH,
    now: datetime | None = None,
) -> AdmitReport:
    """Give out the free slots of one page of waiting rows, the most urgent and oldest first.

    A full batch means that more may go at once: ask again from the same place.
    """
    place = None if after is None else list(after.keys)
    row = await database.fetch_row(_ADMIT_HELD, place, STEPS, GROUPS, batch, now)
    admitted, last = row or ((), None)
    return AdmitReport(tuple(admitted), None if last is None else Place(tuple(last)))


async def put_limits(
    database: Database | Session, limits: Iterable[Limit] = (), *, lifted: Iterable[LimitKey] = ()
) -> None:
    """Set the concurrency limits that are given and take away those that are `lifted`.

    A lower one stops nothing that runs: no more start until there is room again.
    """
    told: dict[str, int | None] = {key_text(key): None for key in lifted}
    told |= {key_text(limit.key): limit.at_most for limit in limits}
    await database.execute(_PUT_LIMITS, list(told), list(told.values()))
