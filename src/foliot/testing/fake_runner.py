"""A runner that runs nothing: each attempt ends as the test says, when the test says."""

import asyncio
from collections.abc import Callable
from typing import Final
from uuid import UUID

from foliot.core.model import TargetType
from foliot.runtime.clock import SystemClock
from foliot.worker.tasks import Cancelled, Ended, HandedBack, Reporter, Succeeded, Task

_CLOCK: Final = SystemClock()

Answer = Callable[[Task], Ended | None]


class FakeRunner:
    """`answer` says how an attempt ends at once; None keeps it running until `end`, `cancel` or
    `close`."""

    def __init__(self, answer: Answer = lambda _: Succeeded(), *handlers: str) -> None:
        self.answer = answer
        self.tasks: list[Task] = []
        self.cancelled: list[tuple[UUID, str]] = []
        self.starts = 0
        self.is_closed = False
        self.when_cancelled: Callable[[str], Ended | None] = Cancelled  # None: it runs on
        self._handlers = frozenset(handlers or ("work",))
        self._under_way: dict[UUID, asyncio.Future[Ended]] = {}
        self._reporter: Reporter | None = None

    @property
    def handlers(self) -> frozenset[str]:
        return self._handlers

    @property
    def target_types(self) -> frozenset[TargetType]:
        return frozenset({TargetType.HANDLER})

    @property
    def under_way(self) -> set[UUID]:
        return set(self._under_way)

    @property
    def reporter(self) -> Reporter:
        assert self._reporter is not None  # noqa: S101 - a test that asks has begun something
        return self._reporter

    async def start(self) -> None:
        self.starts += 1

    async def run(self, task: Task, reporter: Reporter) -> Ended:
        self._reporter = reporter
        self.tasks.append(task)
        reporter.started(task)
        ended = self.answer(task)
        if ended is not None:
            return ended
        if self.is_closed:
            return HandedBack("closed")
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._under_way[task.execution_id] = future
        try:
            return await future
        finally:
            self._under_way.pop(task.execution_id, None)

    def end(self, execution_id: UUID, ended: Ended) -> None:
        self._under_way[execution_id].set_result(ended)

    def cancel(self, execution_id: UUID, reason: str) -> None:
        self.cancelled.append((execution_id, reason))
        future = self._under_way.get(execution_id)
        ended = self.when_cancelled(reason)
        if future is not None and not future.done() and ended is not None:
            future.set_result(ended)

    async def close(self, *, grace_seconds: float) -> None:  # noqa: ARG002 - it has none to give
        self.is_closed = True
        for future in self._under_way.values():
            if not future.done():
                future.set_result(HandedBack("closed"))
        for _ in range(5):  # those who waited for them go on before this is over
            await _CLOCK.sleep(0)
