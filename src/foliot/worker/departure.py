"""How a worker goes: in order when it is told to, at once when told twice, in flight when lost.

In order: it claims nothing more, hands back what has not begun, and lets the rest finish for as
long as it may; what runs on is stopped and handed back without costing an attempt. In every case
no process of a handler is left behind. A database that does not answer is waited for only while an
end is not written, and for no longer than the time to leave or five seconds.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from foliot.core.ids import WorkerId
from foliot.runtime.clock import Clock
from foliot.runtime.service import SharedAnswer
from foliot.store.errors import DatabaseError
from foliot.store.workers import deregister, drain
from foliot.worker.attempts import Attempts
from foliot.worker.lines import Lines
from foliot.worker.tasks import Runner

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.02
# Between the request to stop and the kill, for those that were given their time already.
STOP_SECONDS: Final = 1.0
# For the last words to the database.
WRITE_SECONDS: Final = 5.0
HASTE_SECONDS: Final = 1.0
LEAVE_REASON: Final = "the worker leaves"


class Departure:
    def __init__(
        self,
        worker_id: WorkerId,
        attempts: Attempts,
        runner: Runner,
        lines: Lines,
        clock: Clock,
    ) -> None:
        self._worker_id = worker_id
        self._attempts = attempts
        self._runner = runner
        self._lines = lines
        self._clock = clock
        self._answers: list[SharedAnswer[bool]] = []  # that may still come

    async def leave(self, drain_seconds: float, stop: asyncio.Event, lost: asyncio.Event) -> None:
        """Who is lost on its way out flees: what it still runs has begun elsewhere."""
        hand = self._attempts.hand
        leave_by = self._clock.monotonic() + drain_seconds
        self._attempts.leave()

        def is_enough() -> bool:
            return not hand.running or stop.is_set() or lost.is_set()

        if not stop.is_set():
            log.info("leaving: %d executions are still running", hand.running)
            await self._tell(drain(self._lines.beat, self._worker_id), STOP_SECONDS)
            await self._look(is_enough, drain_seconds)
        if hand.running and not lost.is_set():
            self._attempts.stop_running(LEAVE_REASON)
            await self._look(is_enough, STOP_SECONDS)
        if lost.is_set():
            await self.flee()
            return
        await self._runner.close(grace_seconds=0)
        left = max(WRITE_SECONDS, leave_by - self._clock.monotonic())
        await self._write(HASTE_SECONDS if stop.is_set() else left, stop)
        await self._deregister()

    async def flee(self) -> None:
        """What it ran is others'. What had ended is offered, fenced."""
        begun = self._attempts.hand.begun()
        self._attempts.abandon()
        await self._runner.close(grace_seconds=0)
        await self._write(HASTE_SECONDS, asyncio.Event())
        await self._tell(deregister(self._lines.beat, self._worker_id, begun), HASTE_SECONDS)

    async def _write(self, seconds: float, stop: asyncio.Event) -> None:
        """The loops write; here they are waited for."""
        attempts = self._attempts

        def is_written() -> bool:
            ended = attempts.hand.running == 0 or attempts.is_abandoned
            return ended and not attempts.finisher.unwritten and not attempts.logs.waiting

        haste_at = self._clock.monotonic() + HASTE_SECONDS
        await self._look(
            lambda: is_written() or (stop.is_set() and self._clock.monotonic() > haste_at), seconds
        )
        if attempts.finisher.unwritten:
            log.warning("%d ends could not be written", attempts.finisher.unwritten)

    async def _deregister(self) -> None:
        begun = self._attempts.hand.begun()
        await self._tell(deregister(self._lines.beat, self._worker_id, begun), HASTE_SECONDS)

    async def _look(self, is_true: Callable[[], bool], seconds: float) -> None:
        """Until it is true, for so long at the most."""
        until = self._clock.monotonic() + seconds
        while not is_true() and self._clock.monotonic() < until:
            await self._clock.sleep(LOOK_SECONDS)

    async def _tell(self, call: Coroutine[Any, Any, bool], seconds: float) -> None:
        """As well as it can be told: silence says the same, later. Who does not answer in time is
        left alone: to withdraw a question can take as long as the answer."""
        answer = SharedAnswer(lambda: call)
        self._answers.append(answer)
        with suppress(DatabaseError, TimeoutError):
            await answer.get(within_seconds=seconds)
