"""Waiting in a test: for an answer that is true, with an end, and never longer than it takes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from foliot.runtime.clock import SystemClock

Found = TypeVar("Found")

_CLOCK: Final = SystemClock()
LOOK_SECONDS: Final = 0.01


async def soon(look: Callable[[], Awaitable[Found]], *, within_seconds: float = 20.0) -> Found:
    """The first answer of `look` that is true."""
    async with asyncio.timeout(within_seconds):
        while not (found := await look()):
            await _CLOCK.sleep(LOOK_SECONDS)
    return found
