"""How many calls go to one place at once, and whether any should.

A place is a tenant's scheme, host and port: what one tenant does to a host never holds up another.
A call that finds all places taken waits for a second, then it is held and gives its slot in the
worker back; so is one that finds too many waiting already. A slow host has some slots of a worker,
never all of them. A host that does not answer has none: its breaker is open.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from foliot.core.breaker import CALM, Breaker, Outage, Wait, ask, failed, gave_up, succeeded
from foliot.runtime.clock import Clock
from foliot.worker.tasks import Held

WAIT_SECONDS: Final = 1.0
# Places that once failed and that nobody has called since are forgotten from this number on.
REMEMBERED_MAX: Final = 2000


class Destination(NamedTuple):
    tenant_id: UUID
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


class Word(StrEnum):
    """What a call has shown about its destination."""

    ANSWERED = "ANSWERED"
    FAILED = "FAILED"
    NOTHING = "NOTHING"  # it was stopped, or never went out


@dataclass(slots=True)
class _Traffic:
    breaker: Breaker = CALM
    under_way: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    @property
    def is_idle(self) -> bool:
        return not self.under_way and not self.waiting


@dataclass(slots=True)
class Leave:
    """To call, until `Destinations.end`."""

    destination: Destination
    traffic: _Traffic
    is_probe: bool = False


class Destinations:
    """`at_once` calls to each; `chance` in [0, 1) keeps what was held from coming back at once."""

    def __init__(self, at_once: int, clock: Clock, chance: Callable[[], float]) -> None:
        self._at_once = at_once
        self._clock = clock
        self._chance = chance
        self._traffic: dict[Destination, _Traffic] = {}

    async def ask(self, destination: Destination) -> Leave | Held:
        traffic = self._traffic.get(destination)
        if traffic is None:
            self._forget()
            traffic = self._traffic[destination] = _Traffic()
        if traffic.under_way < self._at_once:
            traffic.under_way += 1
        elif not await self._wait(traffic):
            seconds = WAIT_SECONDS * (1 + self._chance())
            return Held(seconds, f"{self._at_once} calls to {destination} are under way already")
        return self._go(destination, traffic)

    def end(self, leave: Leave, word: Word) -> None:
        """The call is over."""
        traffic = leave.traffic
        match word:
            case Word.ANSWERED:
                traffic.breaker = succeeded(traffic.breaker)
            case Word.FAILED:
                now = self._clock.monotonic()
                traffic.breaker = failed(traffic.breaker, now, was_probe=leave.is_probe)
            case Word.NOTHING:
                traffic.breaker = gave_up(traffic.breaker, was_probe=leave.is_probe)
        self._give_up_place(leave.destination, traffic)

    def _go(self, destination: Destination, traffic: _Traffic) -> Leave | Held:
        """With a place, which goes back if the breaker is open by now."""
        if traffic.breaker.outage is None:
            return Leave(destination, traffic)
        decision = ask(traffic.breaker, self._clock.monotonic())
        if isinstance(decision, Wait):
            self._give_up_place(destination, traffic)
            return self._held(destination, decision)
        traffic.breaker = decision.breaker
        return Leave(destination, traffic, decision.is_probe)

    def _held(self, destination: Destination, wait: Wait) -> Held:
        """Those that are held come back one by one, from the time of the probe on."""
        outage = wait.outage
        seconds = wait.seconds + outage.pause_seconds * self._chance()
        return Held(seconds, _words(destination, outage, self._clock.monotonic()))

    async def _wait(self, traffic: _Traffic) -> bool:
        """For a place, which is handed on without being free in between."""
        if len(traffic.waiting) >= self._at_once:
            return False
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        traffic.waiting.append(place)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await place
        except BaseException as stopped:
            given = place.done() and not place.cancelled()
            if given and isinstance(stopped, TimeoutError):
                return True
            if given:
                self._hand_on(traffic)
            elif place in traffic.waiting:  # who had one to give may have passed it over already
                traffic.waiting.remove(place)
            if isinstance(stopped, TimeoutError):
                return False
            raise
        return True

    def _give_up_place(self, destination: Destination, traffic: _Traffic) -> None:
        self._hand_on(traffic)
        if traffic.is_idle and traffic.breaker.is_calm:
            del self._traffic[destination]

    def _hand_on(self, traffic: _Traffic) -> None:
        """To who has waited longest."""
        while traffic.waiting:
            place = traffic.waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        traffic.under_way -= 1

    def _forget(self) -> None:
        if len(self._traffic) < REMEMBERED_MAX:
            return
        idle = [each for each, traffic in self._traffic.items() if traffic.is_idle]
        for each in idle[: REMEMBERED_MAX // 2]:
            del self._traffic[each]


def _words(destination: Destination, outage: Outage, now: float) -> str:
    return (
        f"{destination} does not answer: {outage.failures} calls have failed"
        f" in the last {now - outage.since:.0f} s; it is tried again"
        f" every {outage.pause_seconds:.0f} s"
    )
