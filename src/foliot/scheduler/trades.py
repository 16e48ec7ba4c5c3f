"""The trades that need no shard: every scheduler does them, and any number may at once."""

from datetime import datetime
from typing import Protocol

from foliot.runtime.clock import Clock
from foliot.scheduler.after import FireAfter
from foliot.scheduler.keep_limits import KeepLimits
from foliot.scheduler.release import Admit, Release, ReleaseOverlaps
from foliot.scheduler.replay import AutoReplay, WatchDeadLetters
from foliot.scheduler.rescue import EndOverdue, Expire, Rescue
from foliot.scheduler.retain import Retain
from foliot.scheduler.unserved import WatchLanes
from foliot.store.database import Database
from foliot.transport.port import SILENCE, Publisher


class Trade(Protocol):
    """`pause_seconds` is how long to wait after the last pass; a pass may change it."""

    @property
    def name(self) -> str: ...

    @property
    def pause_seconds(self) -> float: ...

    async def run_once(self, now: datetime | None = None) -> object:
        """One pass; a test may say what time it is."""


def common_trades(
    database: Database, clock: Clock, hints: Publisher = SILENCE
) -> tuple[Trade, ...]:
    """Fresh ones, for one scheduler: some remember what they saw in earlier passes."""
    return (
        Release(database, clock, hints=hints),
        ReleaseOverlaps(database, clock, hints=hints),
        Admit(database, clock, hints=hints),
        KeepLimits(database, hints=hints),
        FireAfter(database, clock, hints=hints),
        Rescue(database, clock),
        EndOverdue(database, clock),
        Expire(database),
        Retain(database),
        WatchLanes(database, clock),
        AutoReplay(database, hints=hints),
        WatchDeadLetters(database),
    )
