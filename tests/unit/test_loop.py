"""Loops that hear hints: they wake at once, and rest however many come."""

import asyncio

from foliot.runtime.clock import SystemClock
from foliot.runtime.loop import Hint, repeat
from foliot.runtime.service import beside


class Resting:
    """Sleeps for less than a minute take no time and are noted; longer ones never end."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.rests: list[float] = []

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        if seconds >= 60:
            await asyncio.Event().wait()
        self.rests.append(seconds)
        self.seconds += seconds


async def passes_of(clock: Resting, took: float, hints: int, rest_seconds: float) -> int:
    """How many passes so many hints cause, each taking so long and followed by an hour's wait."""
    hint, begun, done = Hint(), 0, asyncio.Event()

    async def run_once() -> float:
        nonlocal begun
        begun += 1
        clock.seconds += took
        if begun <= hints:
            hint.give()
        else:
            done.set()
        return 3600.0

    looping = repeat("test", run_once, clock=clock, hint=hint, rest_seconds=rest_seconds)
    async with beside(looping, name="loop"):
        async with asyncio.timeout(10):
            await done.wait()
        await SystemClock().sleep(0)
    return begun


async def test_a_hint_ends_the_wait_at_once_where_no_rest_is_asked_for() -> None:
    clock = Resting()
    assert await passes_of(clock, took=0.0, hints=3, rest_seconds=0.0) == 4
    assert clock.rests == []


async def test_between_two_passes_there_is_a_rest_whatever_is_hinted() -> None:
    clock = Resting()
    assert await passes_of(clock, took=0.0, hints=3, rest_seconds=0.02) == 4
    assert clock.rests[:3] == [0.02] * 3


async def test_after_a_long_pass_the_rest_is_as_long() -> None:
    clock = Resting()
    assert await passes_of(clock, took=5.0, hints=3, rest_seconds=0.02) == 4
    assert clock.rests[:3] == [5.0] * 3
