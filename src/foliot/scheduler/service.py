"""A scheduler: its trades side by side, each in a loop of its own, until it is told to stop.

Firing, leases and all the rest have connections of their own: a long walk of one keeps none of the
others waiting. Stopping gives the shards back at once; what was under way and is lost is fired by
whoever takes them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from foliot.core.errors import FoliotError
from foliot.runtime.clock import Clock
from foliot.runtime.loop import failure_pause_seconds, repeat
from foliot.runtime.server_time import ServerTime
from foliot.scheduler.fire import Fire
from foliot.scheduler.firing import Firing
from foliot.scheduler.lookback import Lookback
from foliot.scheduler.shards import Shards
from foliot.scheduler.stage import AT_HAND_BACK, StageAhead, StageAtHand
from foliot.scheduler.staged import Staged
from foliot.scheduler.sweep import LOOK_BACK, Sweep
from foliot.scheduler.trades import Trade, common_trades
from foliot.store.database import Database
from foliot.store.server_clock import read_clock
from foliot.store.shards import Scheduler, forget_silent

log = logging.getLogger(__name__)

# A pass, and how long to wait after it.
Pass = Callable[[], Awaitable[float]]

LEARN_SECONDS: Final = 1.0
LEAVE_WITHIN_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Connections:
    """One database, in three ways."""

    leases: Database
    firing: Database
    trades: Database


class SchedulerService:
    def __init__(self, connections: Connections, clock: Clock, node: Scheduler) -> None:
        self._connections = connections
        self._clock = clock
        self._node = node
        self._time = ServerTime(lambda: read_clock(connections.leases), clock)
        self._shards = Shards(connections.leases, clock, node)
        self._staged = Staged()
        self._firing = Firing(connections.firing, self._time.now)
        self._fire = Fire(clock, self._time, self._staged, self._firing)

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await self._learn_first()
            log.info("scheduler %s runs on %s", self._node.id, self._node.host)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._repeat("learn the time", self._learn))
                group.create_task(self._repeat(self._fire.name, self._fire_when_due))
                for trade in self._trades():
                    group.create_task(self._repeat(trade.name, _passes(trade)))
        finally:
            await self._leave()

    def _trades(self) -> list[Trade]:
        """All but firing, which waits for due times rather than between passes."""
        firing, clock, shards = self._connections.firing, self._clock, self._shards
        at_hand, overdue = Lookback(clock, AT_HAND_BACK), Lookback(clock, LOOK_BACK)
        own = (self._time, shards, self._staged)
        return [
            shards,
            StageAhead(firing, clock, *own),
            StageAtHand(firing, at_hand, *own, self._firing),
            Sweep(firing, overdue, *own, self._firing),
            *common_trades(self._connections.trades, clock),
        ]

    def _repeat(self, name: str, run_once: Pass) -> Coroutine[Any, Any, None]:
        return repeat(name, run_once, clock=self._clock)

    async def _fire_when_due(self) -> float:
        await self._fire.wait()
        await self._fire.run_once()
        return 0.0

    async def _learn(self) -> float:
        await self._time.learn()
        return LEARN_SECONDS

    async def _learn_first(self) -> None:
        """Nobody can do anything without the time."""
        failures = 0
        while not self._time.is_known:
            try:
                await forget_silent(self._connections.leases)
                await self._time.learn()
            except FoliotError as error:
                failures += 1
                log.debug("the database does not say what time it is: %s", error)
                await self._clock.sleep(failure_pause_seconds(failures))

    async def _leave(self) -> None:
        """Whoever cannot say goodbye is missed after a lease."""
        with suppress(FoliotError, TimeoutError):
            async with asyncio.timeout(LEAVE_WITHIN_SECONDS):
                await self._shards.leave()


def _passes(trade: Trade) -> Pass:
    async def one_pass() -> float:
        await trade.run_once()
        return trade.pause_seconds

    return one_pass
