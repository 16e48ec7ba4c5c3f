"""A scheduler: its trades side by side, each in a loop of its own, until it is told to stop.

Firing, leases and all the rest have connections of their own: a long walk of one keeps none of the
others waiting. Stopping gives the shards back at once; what was under way and is lost is fired by
whoever takes them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from foliot.core.errors import FoliotError
from foliot.runtime.clock import Clock
from foliot.runtime.health import Readiness
from foliot.runtime.loop import Hint, Passes, failure_pause_seconds, repeat
from foliot.runtime.server_time import ServerTime
from foliot.scheduler.after import FireAfter
from foliot.scheduler.fire import Fire
from foliot.scheduler.firing import Firing
from foliot.scheduler.lookback import Lookback
from foliot.scheduler.release import Admit, Release, ReleaseOverlaps
from foliot.scheduler.shards import Shards
from foliot.scheduler.stage import AT_HAND_BACK, StageAhead, StageAtHand
from foliot.scheduler.staged import Staged
from foliot.scheduler.standing import LEARN, Standing
from foliot.scheduler.sweep import LOOK_BACK, Sweep
from foliot.scheduler.trades import Trade, common_trades
from foliot.store.database import Database
from foliot.store.server_clock import read_clock
from foliot.store.shards import Scheduler, forget_silent
from foliot.transport.port import SILENCE, Matter, Transport

log = logging.getLogger(__name__)

# A pass, and how long to wait after it.
Pass = Callable[[], Awaitable[float]]

LEARN_SECONDS: Final = 1.0
LEAVE_WITHIN_SECONDS: Final = 1.0
# However many hints come, a trade that hears them begins no more often than this.
HINT_REST_SECONDS: Final = 0.02
MATTERS: Final[Mapping[type[Trade], Matter]] = {
    StageAtHand: Matter.STAGE,
    Release: Matter.RELEASE,
    ReleaseOverlaps: Matter.OVERLAP,
    Admit: Matter.ADMIT,
    FireAfter: Matter.AFTER,
}


@dataclass(frozen=True, slots=True)
class Connections:
    """One database, in three ways."""

    leases: Database
    firing: Database
    trades: Database


class SchedulerService:
    def __init__(
        self,
        connections: Connections,
        clock: Clock,
        node: Scheduler,
        transport: Transport = SILENCE,
    ) -> None:
        self._connections = connections
        self._clock = clock
        self._node = node
        self._transport = transport
        self._time = ServerTime(lambda: read_clock(connections.leases), clock)
        self._shards = Shards(connections.leases, clock, node)
        self._staged = Staged()
        self._firing = Firing(connections.firing, self._time.now, transport)
        self._fire = Fire(clock, self._time, self._staged, self._firing)
        self._passes = Passes(clock)
        self._standing = Standing(
            connections.trades, self._time, self._firing.refusals, self._passes
        )

    @property
    def readiness(self) -> Readiness:
        """How it gets on."""
        return self._standing

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await self._learn_first()
            log.info("scheduler %s runs on %s", self._node.id, self._node.host)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._repeat(LEARN, self._learn))
                group.create_task(self._repeat(self._fire.name, self._fire_when_due))
                for trade in self._trades():
                    group.create_task(self._repeat(trade.name, _passes(trade), self._hint(trade)))
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
            StageAtHand(at_hand, *own, self._firing),
            Sweep(overdue, *own, self._firing),
            *common_trades(self._connections.trades, clock, self._transport),
            self._standing,
        ]

    def _repeat(
        self, name: str, run_once: Pass, hint: Hint | None = None
    ) -> Coroutine[Any, Any, None]:
        return repeat(
            name,
            run_once,
            clock=self._clock,
            hint=hint,
            rest_seconds=HINT_REST_SECONDS if hint else 0.0,
            passes=self._passes,
        )

    def _hint(self, trade: Trade) -> Hint | None:
        """Given when somebody says that there is something to do; None for those nobody tells."""
        matter = MATTERS.get(type(trade))
        if matter is None:
            return None
        hint = Hint()

        def hear(names: frozenset[str]) -> None:
            if matter is not Matter.STAGE or not names or names & self._own_shards():
                hint.give()

        self._transport.subscribe(matter, hear)
        return hint

    def _own_shards(self) -> set[str]:
        return {str(shard) for shard in self._shards.owned}

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
                level = logging.WARNING if failures == 1 else logging.DEBUG
                log.log(level, "the database does not say what time it is: %s", error)
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
