"""Jobs that follow others fire when their parents have ended.

Any number of schedulers do this at once: a child is decided about under its lock, and whoever comes
second finds nothing left to tell. What fires is let go in the same pass. A child that the database
refuses is told about, counted, and left alone for ten seconds: its parents' ends wait for it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.runtime.clock import Clock
from foliot.runtime.metrics import EXECUTIONS_RELEASED, INSTANTS_SKIPPED, JOBS_TRIGGERED
from foliot.scheduler.firing import Refusals
from foliot.scheduler.release import tell_of_release
from foliot.scheduler.wide_look import WideLook
from foliot.store import completions
from foliot.store.completions import follow, read_news
from foliot.store.database import Database
from foliot.store.releasing import release_due
from foliot.transport.port import SILENCE, Publisher

PAUSE_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Followed:
    """`told`: children that heard of an end, once for each page."""

    told: int = 0
    fired: int = 0
    skipped: int = 0
    refused: int = 0


class FireAfter:
    name: Final = "fire after"

    def __init__(
        self,
        database: Database,
        clock: Clock,
        rows: int = completions.ROWS,
        hints: Publisher = SILENCE,
    ) -> None:
        self._database = database
        self._rows = rows
        self._hints = hints
        self._wide = WideLook(database, clock)
        self._refusals = Refusals()
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> Followed:
        """Until a page is not full. A child that somebody else holds is met again."""
        low = await self._wide.low(now)
        news = await read_news(self._database, low, now)
        done = Followed()
        if news.waiting:
            done = await self._follow(low, news.moment, now)
        self._wide.done(news.low)
        JOBS_TRIGGERED.inc(done.fired)
        INSTANTS_SKIPPED.inc(done.skipped)
        if done.fired:
            await self._release(low, now)
        return done

    async def _follow(
        self, low: datetime | None, moment: datetime, now: datetime | None
    ) -> Followed:
        told = fired = skipped = refused = 0
        more = True
        while more:
            unfit = self._refusals.standing(moment)
            page = await follow(self._database, low, rows=self._rows, unfit=unfit, now=now)
            for job_id, failure in page.refused:
                self._refusals.refuse(job_id, moment, failure)
            told, fired = told + page.told, fired + len(page.fired)
            skipped, refused = skipped + len(page.skipped), refused + len(page.refused)
            more = page.full
        return Followed(told, fired, skipped, refused)

    async def _release(self, low: datetime | None, now: datetime | None) -> None:
        """At once, not only with the next pass of the release."""
        batch = await release_due(self._database, low, now=now)
        EXECUTIONS_RELEASED.inc(batch.released)
        tell_of_release(self._hints, batch)
