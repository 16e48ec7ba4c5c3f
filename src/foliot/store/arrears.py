"""What should have been done by now, and how long it has waited: whether the whole gets on.

Three ages have limits: of the oldest instant that is due and not fired, of the oldest worker that
is silent and not buried, of the oldest callback that is due and not delivered.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.grace import EXPIRY_SECONDS
from foliot.core.ids import JobId
from foliot.runtime.health import Check
from foliot.runtime.metrics import OLDEST_CALLBACK, OLDEST_INSTANT, OLDEST_LEASE
from foliot.store.database import Database
from foliot.store.shards import LEASE_SECONDS
from foliot.store.statements import statement

_READ_ARREARS: Final = statement("schema/read_arrears")

# What fires late is caught up with in seconds; a rescuer that has just begun waits for an expiry.
INSTANT_SECONDS_MAX: Final = 30.0
LEASE_SECONDS_MAX: Final = 30.0
CALLBACK_SECONDS_MAX: Final = 60.0
# Who does not know which jobs cannot be fired looks no further back than this.
WINDOW_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Arrears:
    """In seconds; 0 where nothing waits. A worker's lease counts from when it ran out."""

    instant_seconds: float
    lease_seconds: float
    callback_seconds: float

    def checks(self) -> Mapping[str, Check]:
        return {
            "instants": _check("instant", "due", self.instant_seconds, INSTANT_SECONDS_MAX),
            "leases": _check("worker", "silent", self.lease_seconds, LEASE_SECONDS_MAX),
            "callbacks": _check("callback", "due", self.callback_seconds, CALLBACK_SECONDS_MAX),
        }


async def read_arrears(
    database: Database, unfit: Collection[JobId] | None = None, now: datetime | None = None
) -> Arrears:
    """`unfit`: the jobs that cannot be fired, for a scheduler, who knows them."""
    window = WINDOW_SECONDS if unfit is None else None
    row = await database.fetch_row(
        _READ_ARREARS, list(unfit or ()), window, LEASE_SECONDS, EXPIRY_SECONDS, now
    )
    if row is None:
        raise AssertionError("the function always answers")
    arrears = Arrears(*(max(0.0, seconds or 0.0) for seconds in row))
    OLDEST_INSTANT.set(arrears.instant_seconds)
    OLDEST_LEASE.set(arrears.lease_seconds)
    OLDEST_CALLBACK.set(arrears.callback_seconds)
    return arrears


def _check(thing: str, state: str, seconds: float, most: float) -> Check:
    if seconds <= most:
        return Check(ok=True, detail=f"no {thing} has been {state} for too long")
    detail = f"the oldest {thing} has been {state} for {seconds:.0f} s, {most:.0f} s at the most"
    return Check(ok=False, detail=detail)
