"""Hints as notifications of the database that everyone has anyway.

What a process has to tell goes out as one notification, after what it tells of was committed, and
at most every ten milliseconds. Whoever listens has a connection for it, and sends itself an echo on
the way that all hints take, at the beginning and every few seconds: only while its echo comes back
are hints known to flow. A line that was lost is made again, sooner at first and then later.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from foliot.core.errors import FoliotError
from foliot.runtime.chance import random_name
from foliot.runtime.clock import Clock
from foliot.runtime.loop import Hint, repeat
from foliot.runtime.metrics import HINTS_FLOW, HINTS_HEARD, HINTS_SENT
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.hints import listen, send
from foliot.transport.message import EVERYTHING, Bundle, decode, encode
from foliot.transport.port import Hear, Matter

log = logging.getLogger(__name__)

NAME: Final = "foliot_hints"
ECHO_NAME: Final = "foliot_echo"
SPACING_SECONDS: Final = 0.01
IDLE_SECONDS: Final = 60.0
ECHO_EVERY_SECONDS: Final = 15.0
ECHO_WITHIN_SECONDS: Final = 5.0
FIRST_DELAY_SECONDS: Final = 0.1
LONGEST_DELAY_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class DirectLine:
    """The way straight to the server."""

    url: str
    options: ConnectionOptions


class PostgresTransport:
    """Sends through `database`; listens on `line`, and without one never hears anything."""

    def __init__(self, database: Database, clock: Clock, line: DirectLine | None = None) -> None:
        self._database = database
        self._clock = clock
        self._line = line
        self._bundle = Bundle()
        self._outgoing = Hint()
        self._hears: dict[Matter, list[Hear]] = defaultdict(list)
        self._flows = False
        self._echo_name = f"{ECHO_NAME}_{random_name()}"
        self._stirred = Hint()
        self._echoed = False
        self._lost = False
        self._failures = 0

    @property
    def flows(self) -> bool:
        return self._flows

    def publish(self, matter: Matter, names: Iterable[str] = ()) -> None:
        self._bundle.add(matter, names)
        self._outgoing.give()

    def subscribe(self, matter: Matter, hear: Hear) -> Callable[[], None]:
        self._hears[matter].append(hear)
        return lambda: self._hears[matter].remove(hear)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            sending = repeat(
                "send hints",
                self._send,
                clock=self._clock,
                hint=self._outgoing,
                rest_seconds=SPACING_SECONDS,
            )
            group.create_task(sending)
            if self._line is not None:
                group.create_task(repeat("hear hints", self._listen, clock=self._clock))

    async def _send(self) -> float:
        """What cannot be sent is lost: whoever polls finds what it was about."""
        if self._bundle:
            await send(self._database, NAME, encode(self._bundle.take()))
            HINTS_SENT.inc()
        return IDLE_SECONDS

    async def _listen(self) -> float:
        """For as long as the line holds; then how long to wait before the next."""
        if self._line is None:
            return IDLE_SECONDS
        self._lost = False
        try:
            async with listen(
                self._line.url,
                self._line.options,
                (NAME, self._echo_name),
                hear=self._hear,
                lost=self._lose,
            ):
                reason = await self._stay()
        except FoliotError as error:
            reason = str(error)
        finally:
            self._set_flow(False)
        self._failures += 1
        level = logging.WARNING if self._failures == 1 else logging.DEBUG
        log.log(level, "no hints are heard, polling instead: %s", reason)
        delay = FIRST_DELAY_SECONDS * 2.0 ** min(self._failures - 1, 10)
        return min(delay, LONGEST_DELAY_SECONDS)

    async def _stay(self) -> str:
        """Listen for as long as echoes come; why that is over."""
        while True:
            self._echoed = False
            await send(self._database, self._echo_name, "")
            await self._until(lambda: self._echoed or self._lost, ECHO_WITHIN_SECONDS)
            if self._lost:
                return "the connection was lost"
            if not self._echoed:
                return (
                    f"what is sent does not arrive within {ECHO_WITHIN_SECONDS:g} s"
                    " (a pooler in transaction mode lets nothing through)"
                )
            self._failures = 0
            self._set_flow(True)
            await self._until(lambda: self._lost, ECHO_EVERY_SECONDS)

    async def _until(self, is_so: Callable[[], bool], seconds: float) -> None:
        """Until it is so, for so long at the most."""
        end = self._clock.monotonic() + seconds
        while not is_so() and (left := end - self._clock.monotonic()) > 0:
            await self._stirred.wait(left, self._clock)

    def _hear(self, name: str, text: str) -> None:
        if name == self._echo_name:
            self._echoed = True
            self._stirred.give()
            return
        HINTS_HEARD.inc()
        for matter, names in decode(text).items():
            self._tell(matter, names)

    def _lose(self) -> None:
        self._lost = True
        self._stirred.give()

    def _set_flow(self, flows: bool) -> None:
        """Whoever waits long because hints come must know that they no longer do; and whatever
        was told while nobody listened is made up for."""
        if flows == self._flows:
            return
        self._flows = flows
        HINTS_FLOW.set(flows)
        if flows:
            log.info("hints are heard")
        for matter in tuple(self._hears):
            self._tell(matter, EVERYTHING)

    def _tell(self, matter: Matter, names: frozenset[str]) -> None:
        for hear in tuple(self._hears[matter]):
            hear(names)
