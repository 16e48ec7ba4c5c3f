"""Jobs that follow others fire when their parents have ended.

Any number of schedulers do this at once: a child is decided about under its lock, and whoever comes
second finds nothing left to tell. What fires is let go in the same pass.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.runtime.clock import Clock
from foliot.runtime.metrics import EXECUTIONS_RELEASED, INSTANTS_SKIPPED, JOBS_TRIGGERED
from foliot.scheduler.release import WIDE_LOOK_SECONDS
from foliot.store import completions
from foliot.store.completions import follow, read_news
from foliot.store.database import Database
from foliot.store.releasing import release_due

PAUSE_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Followed:
    """`told`: children that heard of an end, once for each page."""

    told: int = 0
    fired: int = 0
    skipped: int = 0


class FireAfter:
    name: Final = "fire after"

    def __init__(self, database: Database, clock: Clock, rows: int = completions.ROWS) -> None:
        self._database = database
        self._clock = clock
        self._rows = rows
        self._low: datetime | None = None
        self._looked_wide_at = float("-inf")
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> Followed:
        """Until a page is not full. A child that somebody else holds is met again."""
        began = self._clock.monotonic()
        wide = self._low is None or began - self._looked_wide_at >= WIDE_LOOK_SECONDS
        low = None if wide else self._low
        news = await read_news(self._database, low, now)
        told = fired = skipped = 0
        more = news.waiting
        while more:
            page = await follow(self._database, low, rows=self._rows, now=now)
            told, fired = told + page.told, fired + len(page.fired)
            skipped += len(page.skipped)
            more = page.full
        self._low = news.low
        if wide:
            self._looked_wide_at = began
        JOBS_TRIGGERED.inc(fired)
        INSTANTS_SKIPPED.inc(skipped)
        if fired:
            await self._release(low, now)
        return Followed(told, fired, skipped)

    async def _release(self, low: datetime | None, now: datetime | None) -> None:
        """At once, not only with the next pass of the release."""
        batch = await release_due(self._database, low, now=now)
        EXECUTIONS_RELEASED.inc(batch.released)
