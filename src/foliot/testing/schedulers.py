"""One scheduler whose passes a test makes by hand, at the times it says."""

from datetime import datetime

from foliot.core.ids import SchedulerId
from foliot.runtime.chance import fresh_id
from foliot.runtime.server_time import ServerTime
from foliot.scheduler.fire import Fire, FirePass
from foliot.scheduler.firing import Firing
from foliot.scheduler.lookback import Lookback
from foliot.scheduler.shards import Shards, SharesReport
from foliot.scheduler.stage import AT_HAND_BACK, StageAhead, StageAtHand
from foliot.scheduler.staged import Staged
from foliot.scheduler.sweep import LOOK_BACK, Sweep
from foliot.store.database import Database
from foliot.store.server_clock import read_clock
from foliot.store.shards import Scheduler
from foliot.testing.clock import ManualClock
from foliot.transport.port import SILENCE, Publisher


class ManualScheduler:
    """Its own clock moves with the times it is told."""

    def __init__(self, database: Database, hints: Publisher = SILENCE) -> None:
        self.node = Scheduler(SchedulerId(fresh_id()), "testhost", "0")
        self.clock = ManualClock()
        self.time = ServerTime(lambda: read_clock(database), self.clock)
        self.shards = Shards(database, self.clock, self.node)
        self.staged = Staged()
        self.firing = Firing(database, self.time.now, hints)
        own = (self.time, self.shards, self.staged)
        at_hand, overdue = Lookback(self.clock, AT_HAND_BACK), Lookback(self.clock, LOOK_BACK)
        self.ahead = StageAhead(database, self.clock, *own)
        self.at_hand = StageAtHand(at_hand, *own, self.firing)
        self.fires = Fire(self.clock, self.time, self.staged, self.firing)
        self.sweep = Sweep(overdue, *own, self.firing)
        self._told: datetime | None = None

    async def share(self, now: datetime) -> SharesReport:
        self._feel(now)
        return await self.shards.run_once(now)

    async def stage(self, now: datetime) -> int:
        """Both looks; how many jobs were news."""
        self._feel(now)
        ahead = await self.ahead.run_once(now)
        return ahead.staged + (await self.at_hand.run_once(now)).staged

    async def fire(self, now: datetime) -> FirePass:
        self._feel(now)
        return await self.fires.run_once(now)

    def _feel(self, now: datetime) -> None:
        if self._told is not None:
            self.clock.seconds += (now - self._told).total_seconds()
        self._told = now
