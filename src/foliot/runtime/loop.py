"""A trade done again and again: one pass, a pause, the next pass, until cancelled.

A pass says how long to wait before the next; a hint can end the wait early. A pass that fails is
told and counted, and the next one comes a little later each time: a loop never dies of an error.
The pause is spread a little, so that loops that were started together do not stay in step.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
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
        waiting = asyncio.create_task(self._event.wait())
        pausing = asyncio.create_task(clock.sleep(seconds))
        try:
            await asyncio.wait({waiting, pausing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            pausing.cancel()
            await asyncio.wait({waiting, pausing})
        self._event.clear()


async def repeat(
    name: str,
    run_once: Callable[[], Awaitable[float]],
    *,
    clock: Clock,
    hint: Hint | None = None,
) -> None:
    """Passes of `run_once`, which returns the seconds to wait before the next, for ever."""
    hint = hint or Hint()
    failures = 0
    while True:
        try:
            pause = await run_once()
        except FoliotError as error:
            failures += 1
            _tell(name, failures, error)
            pause = failure_pause_seconds(failures)
        except Exception:  # a defect of ours: told in full, and the trade goes on
            failures += 1
            LOOP_FAILURES.labels(name).inc()
            log.exception("%s failed", name)
            pause = failure_pause_seconds(failures)
        else:
            failures = 0
            LOOP_PASSES.labels(name).inc()
        await hint.wait(pause * (1 + SPREAD * random_fraction()), clock)


def failure_pause_seconds(failures: int) -> float:
    """After the first failure a tenth of a second, then twice as long each time, at most two."""
    return min(FAILURE_SECONDS_MIN * 2.0 ** min(failures - 1, 10), FAILURE_SECONDS_MAX)


def _tell(name: str, failures: int, error: FoliotError) -> None:
    """An outage is told once at its begin, not at every pass."""
    LOOP_FAILURES.labels(name).inc()
    level = logging.WARNING if failures == 1 else logging.DEBUG
    log.log(level, "%s failed, trying again: %s", name, error)
