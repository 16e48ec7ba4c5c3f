"""What is due soon is brought into memory: each job of our shards once, seconds before its time.

Two looks at the database share the work. The one ahead moves a window: from where the last one
ended to five seconds from now. The one at hand covers the next quarter of a second again and again,
for jobs that came or changed inside the window, or that we passed over.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from foliot.runtime.clock import Clock
from foliot.runtime.server_time import ServerTime
from foliot.scheduler.firing import Firing
from foliot.scheduler.lookback import Lookback
from foliot.scheduler.shards import Shards
from foliot.scheduler.staged import Staged
from foliot.store.database import Database
from foliot.store.staging import stage_page

AHEAD: Final = timedelta(seconds=5)
AHEAD_PAUSE_SECONDS: Final = 1.0
AT_HAND: Final = timedelta(seconds=0.25)
AT_HAND_PAUSE_SECONDS: Final = 0.15
# While a page shows only what is staged already, whoever comes has to wait for those anyway.
HERD_PAUSE_SECONDS: Final = 0.5
# Older than this and not yet seen is rare: the looks without a bound are for that.
AT_HAND_BACK: Final = timedelta(seconds=1)
# Rows of one answer: some ten milliseconds during which nothing else is done here.
PAGE: Final = 1000
# As many of one shard may share one instant; what is beyond is read once these are fired.
HERD: Final = 16 * PAGE
# Some 2 KB each. While there are as many, nobody looks further ahead; after an outage that is not
# ahead at all.
STAGED_MAX: Final = 200_000
# Settled in one go, a few milliseconds' work.
PREPARED_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class StageReport:
    """How many jobs were news, and up to when everything is known."""

    staged: int
    until: datetime


class StageAhead:
    name: Final = "stage ahead"

    def __init__(
        self, database: Database, clock: Clock, time: ServerTime, shards: Shards, staged: Staged
    ) -> None:
        self._database = database
        self._clock = clock
        self._time = time
        self._shards = shards
        self._staged = staged
        self._known_until: dict[int, datetime] = {}
        self.pause_seconds = AHEAD_PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> StageReport:
        until = (now or self._time.now()) + AHEAD
        owned = self._shards.owned
        if self._known_until.keys() - owned:
            self._forget_all_but(owned)
        news = 0
        for low, shards in self._gaps(owned):
            news += await self._read(shards, low, until)
        while self._staged.prepare(PREPARED_AT_ONCE):
            await self._clock.sleep(0)
        return StageReport(news, until)

    def _forget_all_but(self, owned: Collection[int]) -> None:
        self._known_until = {
            shard: known for shard, known in self._known_until.items() if shard in owned
        }
        self._staged.keep(owned)

    def _gaps(self, owned: Collection[int]) -> list[tuple[datetime | None, list[int]]]:
        """The shards by where the next window begins: at the very first for those new to us."""
        found: dict[datetime | None, list[int]] = defaultdict(list)
        for shard in sorted(owned):
            found[self._known_until.get(shard)].append(shard)
        return list(found.items())

    async def _read(self, shards: list[int], low: datetime | None, high: datetime) -> int:
        """Page by page, while there is room. Where a page is full of one instant, shard by shard,
        whole."""
        news, limit = 0, PAGE
        while len(self._staged) < STAGED_MAX:
            turn = self._staged.turn
            page = await stage_page(self._database, shards, low=low, high=high, limit=limit)
            news += self._staged.offer(page.jobs, turn)
            of_one_instant = page.first == page.last
            if page.is_full and of_one_instant and len(shards) > 1:
                for shard in shards:
                    news += await self._read([shard], low, high)
                return news
            if not page.is_full or page.last is None or (of_one_instant and limit == HERD):
                self._known_until.update(dict.fromkeys(shards, high))
                return news
            # Those at the very end of the page may not be all of their instant.
            self._known_until.update(dict.fromkeys(shards, page.last))
            low, limit = page.last, HERD if of_one_instant else PAGE
        return news


class StageAtHand:
    name: Final = "stage at hand"

    def __init__(
        self,
        lookback: Lookback,
        time: ServerTime,
        shards: Shards,
        staged: Staged,
        firing: Firing,
    ) -> None:
        self._time = time
        self._shards = shards
        self._staged = staged
        self._lookback = lookback
        self._firing = firing
        self.pause_seconds = AT_HAND_PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> StageReport:
        """One page: what is beyond it comes into view as the first are fired."""
        told = now or self._time.now()
        high = told + AT_HAND
        owned = self._shards.owned
        if not owned:
            return StageReport(0, high)
        turn = self._staged.turn
        low = self._lookback.low(told)
        page = await self._firing.look(owned, (low, high), PAGE, told)
        self._lookback.done()
        news = self._staged.offer(page.jobs, turn)
        is_herd = page.is_full and not news
        self.pause_seconds = HERD_PAUSE_SECONDS if is_herd else AT_HAND_PAUSE_SECONDS
        return StageReport(news, high)
