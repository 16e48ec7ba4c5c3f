"""Many deadlines, one timer: each key may have one, which can be moved or dropped at any time.

Setting and dropping cost a heap's push and a dictionary's pop, so that a deadline per attempt is
affordable at tens of thousands a second. Dropped ones stay in the heap until they come up or are
the greater part of it.
"""

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

_SLACK: Final = 1000


class Alarms:
    def __init__(self, ring: Callable[[int], None]) -> None:
        self._ring = ring
        self._loop: asyncio.AbstractEventLoop | None = None  # to ask for it is a system call
        self._at: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0  # uvloop's handle for a time that has passed cannot be asked

    def __contains__(self, key: int) -> bool:
        return key in self._at

    def set(self, key: int, seconds: float) -> None:
        """`ring(key)` in so many seconds, instead of whatever was set for it."""
        loop = self._loop = self._loop or asyncio.get_running_loop()
        at = loop.time() + seconds
        self._at[key] = at
        heappush(self._heap, (at, key))
        if len(self._heap) > 2 * len(self._at) + _SLACK:
            self._heap = [(at, key) for key, at in self._at.items()]
            heapify(self._heap)
        if self._timer is None or at < self._timer_at:
            self._wind(loop)

    def drop(self, key: int) -> None:
        self._at.pop(key, None)

    def close(self) -> None:
        self._at.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wind(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            self._timer_at = self._heap[0][0]
            self._timer = loop.call_at(self._timer_at, self._come_up)

    def _come_up(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._timer = None
        try:
            while self._heap and self._heap[0][0] <= now:
                at, key = heappop(self._heap)
                if self._at.get(key) == at:
                    del self._at[key]
                    self._ring(key)
        finally:  # whatever one of them does, the others come up
            self._wind(loop)
