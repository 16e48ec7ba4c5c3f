"""Concurrency and rate limits: rows that wait for a slot go on as slots come free.

Who holds a slot is counted from rows, under a lock for each key, so that a limit is kept whatever
crashes; so are the starts of a rate, from the marks that claims leave. Rows are looked at by the
list of keys they wait under: how many wait under a full key does not matter. One call looks at a
page of lists; `after` of the answer is where the next begins.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from foliot.core.ids import ExecutionId
from foliot.core.limits import Limit, LimitKey, key_text
from foliot.runtime.chance import random_fraction
from foliot.store.database import Database
from foliot.store.session import Session
from foliot.store.statements import statement

_ADMIT_HELD: Final = statement("limits/admit_held")
_PUT_LIMITS: Final = statement("limits/put_limits")
_WITHDRAW: Final = statement("limits/withdraw")

# A page takes at most three locks a group: far from the 6,400 that a default server has in all.
STEPS: Final = 1000
GROUPS: Final = 100
BATCH: Final = 500
_DRAWS: Final = 2**53
# A worker that has just started or come back claims well within this.
STRANDED_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a walk over the waiting lists, and the lanes of each, goes on."""

    keys: tuple[str, ...]
    lane_id: int


@dataclass(frozen=True, slots=True)
class AdmitReport:
    """Who may be claimed now, and where to go on: None when the walk is at its end.

    `opens_in_seconds`: when the first rate that is used up has room again, if that can be told.
    `cut`: under the first so many keys of the place where it began, a limit is full: what waits
    there from that place on was not looked at.
    """

    admitted: tuple[ExecutionId, ...]
    after: Place | None
    opens_in_seconds: float | None = None
    queues: frozenset[str] = field(default=frozenset(), compare=False)  # of who may be claimed
    cut: int | None = None


@dataclass(frozen=True, slots=True)
class StoredLimit:
    """All that a key is limited to; with nothing, it is not."""

    max_running: int | None = None
    rate_count: int | None = None
    rate_seconds: float | None = None


async def admit_held(
    database: Database,
    after: Place | None = None,
    *,
    within: int | None = None,
    batch: int = BATCH,
    chance: float | None = None,
    now: datetime | None = None,
) -> AdmitReport:
    """Give out the free slots of one page of waiting rows, the oldest of each priority first.

    A full batch means that more may go at once: ask again from the same place. `chance`, from 0 to
    1, says which priorities are drawn. `within`: the walk ends with the lists that have the first
    so many keys of `after`.
    """
    drawn = int((random_fraction() if chance is None else chance) * _DRAWS)
    place = (None, None) if after is None else (list(after.keys), after.lane_id)
    row = await database.fetch_row(_ADMIT_HELD, *place, within, STEPS, GROUPS, batch, drawn, now)
    admitted, last, lane_id, opens_in, queues, cut = row or ((), None, 0, None, None, None)
    reached = None if last is None else Place(tuple(last), lane_id)
    return AdmitReport(tuple(admitted), reached, opens_in, frozenset(queues or ()), cut)


async def withdraw(database: Database, now: datetime | None = None, *, batch: int = BATCH) -> int:
    """Take the slots of executions that nobody is there to claim, or that stand in a full queue and
    are more than it has places for, for others: how many."""
    return int(await database.fetch_value(_WITHDRAW, batch, STRANDED_SECONDS, now))


async def put_limits(
    database: Database | Session, limits: Iterable[Limit] = (), *, lifted: Iterable[LimitKey] = ()
) -> None:
    """Set the limits that are given and take away those that are `lifted`.

    A key is told as a whole: with a rate alone, nothing limits how many run at once. A lower limit
    stops nothing that runs: no more start until there is room again.
    """
    told = {key_text(key): StoredLimit() for key in lifted} | stored_limits(limits)
    await database.execute(
        _PUT_LIMITS,
        list(told),
        [each.max_running for each in told.values()],
        [each.rate_count for each in told.values()],
        [each.rate_seconds for each in told.values()],
    )


def stored_limits(limits: Iterable[Limit]) -> dict[str, StoredLimit]:
    """By key, its concurrency and its rate together."""
    told: dict[str, StoredLimit] = {}
    for limit in limits:
        key = key_text(limit.key)
        known = told.get(key, StoredLimit())
        if limit.period_seconds is None:
            told[key] = replace(known, max_running=limit.at_most)
        else:
            told[key] = replace(known, rate_count=limit.at_most, rate_seconds=limit.period_seconds)
    return told
