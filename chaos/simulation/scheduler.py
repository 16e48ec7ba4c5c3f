"""A scheduler of the simulation: the product's trades, each in a loop of its own.

As `foliot.scheduler.service` puts them together, but for three things: passes are farther apart, so
that a run is short; the five trades that only let rows go share one loop, and are left out while
there is nothing that they could find; and of the two batches that may be under way at once there is
one. Keeping quotas, partitions and health is not simulated.
"""

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from chaos.simulation.database import SimulatedDatabase
from chaos.simulation.engine import Loop, Node, World
from chaos.simulation.store import SimulatedStore
from foliot.core.ids import SchedulerId
from foliot.runtime.server_time import ServerTime
from foliot.scheduler.after import FireAfter
from foliot.scheduler.fire import WAIT_SECONDS_MAX, Fire, FirePass
from foliot.scheduler.firing import Firing
from foliot.scheduler.lookback import Lookback
from foliot.scheduler.release import Admit, Release, ReleaseOverlaps
from foliot.scheduler.rescue import EndOverdue, Expire, Rescue
from foliot.scheduler.shards import Shards
from foliot.scheduler.stage import AT_HAND_BACK, StageAhead, StageAtHand
from foliot.scheduler.staged import Staged
from foliot.scheduler.sweep import LOOK_BACK, Sweep
from foliot.store.server_clock import read_clock
from foliot.store.shards import Scheduler
from foliot.testing.model import passes

LEARN_SECONDS: Final = 4.0
FAILURE_SECONDS: Final = 0.3
# Between two passes, before they are stretched; shorter than half of the gap that breaks a watch.
PAUSES: Final = {
    "shards": 1.0,
    "stage ahead": 1.0,
    "stage at hand": 1.2,
    "sweep": 0.9,
    "errands": 0.5,
    "rescue": 1.4,
    "end overdue": 1.7,
}


class OneFire(Fire):
    """One batch under way at a time: it needs no event loop."""

    async def run_once(self, now: datetime | None = None) -> FirePass:
        self._began = self._clock.monotonic()
        return await self._fire_batches(now or self._time.past(), now)


class SchedulerNode(Node):
    def __init__(self, world: World, name: str, store: SimulatedStore, stretch: float) -> None:
        super().__init__(world, name)
        self.identity = UUID(int=world.chance.getrandbits(128))
        store.bearers[self.identity] = self
        self._store = store
        self._stretch = stretch
        self._database = database = SimulatedDatabase(store, self._set_time)
        self._loops: list[Loop] = []
        node = Scheduler(SchedulerId(self.identity), name, "0")
        self.time = ServerTime(lambda: read_clock(database), self)
        self.shards = Shards(database, self, node)
        self._staged = Staged()
        self._firing = Firing(database, self.time.now)
        self._fire = OneFire(self, self.time, self._staged, self._firing)
        self._fires_at = float("inf")
        self._rests_until = 0.0
        self._armed_for: datetime | None = None
        self._is_firing = False
        self._is_leaving = False
        world.spawn(self, self._learn_first(), self._begin)

    def _set_time(self) -> None:
        self._store.now = self.world.moment

    async def _learn_first(self) -> None:
        await self.time.learn()

    def _begin(self, result: object, failure: Exception | None) -> None:
        del result
        if failure is not None:
            self.world.at(self.world.now + 0.5, self._try_again)
            return
        own = (self.time, self.shards, self._staged)
        at_hand, overdue = Lookback(self, AT_HAND_BACK), Lookback(self, LOOK_BACK)
        database = self._database
        trades = (
            self.shards,
            StageAhead(database, self, *own),
            StageAtHand(at_hand, *own, self._firing),
            Sweep(overdue, *own, self._firing),
            Rescue(database, self),
            EndOverdue(database, self),
        )
        for trade in trades:
            self._repeat(trade.name, trade.run_once)
        self._repeat("errands", self._errands())
        self._loops.append(Loop(self, self.time.learn, lambda: LEARN_SECONDS))
        for loop in self._loops:
            loop.start(0.2)

    def _try_again(self) -> None:
        if self.is_alive:
            self.world.spawn(self, self._learn_first(), self._begin)

    def _repeat(self, name: str, run_once: Callable[[], Coroutine[Any, Any, Any] | None]) -> None:
        pause = PAUSES[name] * self._stretch
        self._loops.append(Loop(self, run_once, lambda: pause))

    def _errands(self) -> Callable[[], Coroutine[Any, Any, Any] | None]:
        database, store = self._database, self._store
        trades: list[tuple[Callable[[], bool], Any]] = [
            (lambda: bool(passes.due(store, None, store.now)), Release(database, self)),
            (lambda: bool(passes.startable(store, store.now)), ReleaseOverlaps(database, self)),
            (lambda: bool(passes.held(store)), Admit(database, self)),
            (lambda: bool(passes.late(store, store.now)), Expire(database)),
            (lambda: bool(store.completions), FireAfter(database, self)),
        ]

        def run_once() -> Coroutine[Any, Any, Any] | None:
            self._set_time()
            wanted = [trade for is_wanted, trade in trades if is_wanted()]
            return _one_after_another(wanted) if wanted else None

        return run_once

    def stop(self) -> None:
        """Nothing more is begun, and what is under way is not waited for."""
        self._is_leaving = True
        for loop in self._loops:
            loop.is_stopped = True
        for process in tuple(self.processes):
            process.end()

    async def leave(self) -> None:
        """Its shards are free at once."""
        await self.shards.leave()

    def stirred(self) -> None:
        """What is staged is fired when it is due, and not before."""
        if self._is_firing or self._is_leaving or not self.time.is_known:
            return
        due = self._staged.next_due
        if due is None or due == self._armed_for:
            return
        seconds = min(max(0.01, self.time.seconds_until_past(due)), WAIT_SECONDS_MAX)
        at = max(self.world.now + seconds, self._rests_until)
        if at < self._fires_at - 0.001:
            self._fires_at, self._armed_for = at, due
            self.world.at(at, self._fire_when_due, at)

    def _fire_when_due(self, at: float) -> None:
        if self._fires_at != at or self._is_leaving or not self.is_alive:
            return
        if self.frozen_until > self.world.now:
            self._fires_at = self.frozen_until
            self.world.at(self.frozen_until, self._fire_when_due, self.frozen_until)
            return
        self._is_firing = True
        self.world.start(self, self._fire.run_once(), self._fired)

    def _fired(self, result: object, failure: Exception | None) -> None:
        """After a failure not at once: as `runtime.loop` has it."""
        del result
        self._is_firing = False
        self._fires_at, self._armed_for = float("inf"), None
        if failure is not None:
            self._rests_until = self.world.now + FAILURE_SECONDS


async def _one_after_another(trades: list[Any]) -> None:
    for trade in trades:
        await trade.run_once()
