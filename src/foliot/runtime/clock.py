"""How a process feels time pass. Durations only: what is due is the database clock's to say."""

import asyncio
import select
import time
from typing import Protocol


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def sleep_thread(seconds: float) -> None:
    """Without an event loop, for last resorts, whatever becomes of the wall clock: `time.sleep` is
    until a moment of a clock, and fails in a process whose clock is faked."""
    select.select((), (), (), seconds)
