"""A trade done again and again: one pass, a pause, the next pass, until cancelled.

A pass says how long to wait before the next; a hint can end the wait early. A pass that fails is
told and counted, and the next one comes a little later each time: a loop never dies of an error,
nor of a cancellation that nobody asked for. The pause is spread a little, so that loops that were
started together do not stay in step.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from foliot.core.errors import FoliotError
from foliot.runtime.chance import random_fraction
from foliot.runtime.clock import Clock
from foliot.runtime.metrics import LOOP_FAILURES, LOOP_PASSES

log = logging.getLogger(__name__)

SPREAD: Final = 0.1
FAILURE_SECONDS_MIN: Final = 0.1
FAILURE_SECONDS_MAX: Final = 2.0


class Hint:
    """Something may have changed: whoever waits need not wait longer. Several are one."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def give(self) -> None:
        self._event.set()

    async def wait(self, seconds: float, clock: Clock) -> None:
        """Until the next hint, also one given before, and for `seconds` at the most."""
        pausing = asyncio.create_task(clock.sleep(seconds))
        pausing.add_done_callback(lambda _: self._event.set())
        try:
            await self._event.wait()
        finally:
            pausing.cancel()
            await asyncio.wait({pausing})
        self._event.clear()


@dataclass(frozen=True, slots=True)
class LateLoop:
    """A loop whose next good pass is overdue, and what its last pass died of."""

    name: str
    late_seconds: float
    failure: str


class Passes:
    """When each loop of a process last had a good pass: whether they get on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[str, float] = {}
        self._failures: dict[str, str] = {}

    def begin(self, name: str) -> None:
        """The first pass is due at once."""
        self._due[name] = self._clock.monotonic()

    def succeed(self, name: str, pause_seconds: float) -> None:
        self._due[name] = self._clock.monotonic() + pause_seconds
        self._failures.pop(name, None)

    def fail(self, name: str, error: BaseException) -> None:
        self._failures[name] = str(error) or type(error).__name__

    def late_seconds(self, name: str) -> float:
        """How long its next good pass has been due; 0 if it has never begun."""
        now = self._clock.monotonic()
        return max(0.0, now - self._due.get(name, now))

    def late(self, most_seconds: float) -> list[LateLoop]:
        """Those that are late by more than that, the latest first."""
        found = [
            LateLoop(name, self.late_seconds(name), self._failures.get(name, ""))
            for name in self._due
            if self.late_seconds(name) > most_seconds
        ]
        return sorted(found, key=lambda loop: -loop.late_seconds)


async def repeat(
    name: str,
    run_once: Callable[[], Awaitable[float]],
    *,
    clock: Clock,
    hint: Hint | None = None,
    rest_seconds: float = 0.0,
    passes: Passes | None = None,
) -> None:
    """Passes of `run_once`, which returns the seconds to wait before the next, for ever.

    With `rest_seconds`, not even a hint ends the wait sooner than that, nor sooner than the pass
    itself took: however many hints come, they cause work for half of the time at the most.
    """
    hint, passes = hint or Hint(), passes or Passes(clock)
    passes.begin(name)
    failures = 0
    while True:
        began = clock.monotonic()
        try:
            pause = await run_once()
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_asked_to_stop():
                raise
            failures += 1
            _tell(name, failures, error)
            passes.fail(name, error)
            pause = failure_pause_seconds(failures)
        else:
            failures = 0
            LOOP_PASSES.labels(name).inc()
            passes.succeed(name, pause)
        pause *= 1 + SPREAD * random_fraction()
        if rest_seconds:
            rest = min(pause, max(rest_seconds, clock.monotonic() - began))
            await clock.sleep(rest)
            pause -= rest
        await hint.wait(pause, clock)


def failure_pause_seconds(failures: int) -> float:
    """After the first failure a tenth of a second, then twice as long each time, at most two."""
    return min(FAILURE_SECONDS_MIN * 2.0 ** min(failures - 1, 10), FAILURE_SECONDS_MAX)


def _is_asked_to_stop() -> bool:
    """Somebody has cancelled this loop, and not merely something that it waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _tell(name: str, failures: int, error: BaseException) -> None:
    """An outage is told once at its begin, not at every pass; a defect of ours in full."""
    LOOP_FAILURES.labels(name).inc()
    if isinstance(error, FoliotError):
        level = logging.WARNING if failures == 1 else logging.DEBUG
        log.log(level, "%s failed, trying again: %s", name, error)
    else:
        log.error("%s failed", name, exc_info=error)
