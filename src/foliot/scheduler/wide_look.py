"""Where a look at what is waiting may begin: near the present, and now and then at the very first.

Below the present lie the dead index entries of all that was done. What came late stands among them,
so every ten seconds a look has no lower bound. Under a pinned snapshot such a look may take too
long and fail: it counts all the same, so that what is near never waits for what is far.
"""

from datetime import datetime, timedelta
from typing import Final

from foliot.runtime.clock import Clock
from foliot.store.database import Database
from foliot.store.server_clock import read_clock

WIDE_LOOK_SECONDS: Final = 10.0
# While no look has been answered: a row is committed at most this long after the time it says.
NEAR: Final = timedelta(seconds=10)


class WideLook:
    """For one trade."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._low: datetime | None = None
        self._looked_wide_at = float("-inf")

    async def low(self, now: datetime | None) -> datetime | None:
        """Where the look that begins now may begin; None: at the very first."""
        began = self._clock.monotonic()
        if began - self._looked_wide_at >= WIDE_LOOK_SECONDS:
            self._looked_wide_at = began
            return None
        return self._low or (now or await read_clock(self._database)) - NEAR

    def done(self, low: datetime) -> None:
        """The look has its answer: below `low` only what came late is left."""
        self._low = low

    def again(self) -> None:
        """It was not at its end: the next one is wide as well."""
        self._looked_wide_at = float("-inf")
