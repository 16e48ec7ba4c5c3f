"""Start and end of a process's own work: the event loop, signals, tasks that belong to a block."""

import asyncio
import gc
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Generic, TypeVar

from foliot.runtime.clock import sleep_thread

log = logging.getLogger(__name__)

T = TypeVar("T")

# Ctrl-C, a polite kill, a terminal that was closed: all ask for the same.
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
COLLECT_AFTER_OBJECTS: Final = 50_000


def collect_rarely() -> None:
    """For a process that makes many small objects and no cycles: looking for some took a third of
    the time. What is here already stays."""
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER_OBJECTS)


def run(
    main: Coroutine[Any, Any, T],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(main)


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None], *, name: str) -> AsyncIterator[None]:
    """`work` runs while the block does and is cancelled at its end; its failure ends the block."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work, name=name)
        try:
            yield
        finally:
            task.cancel()


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None], *, name: str) -> AsyncIterator[None]:
    """`work` runs while the block does and is cancelled at its end. Its failure is told and ends
    nothing: for what is missed and not needed."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()):
            log.error("%s failed", name, exc_info=error)


@asynccontextmanager
async def served(
    work: Callable[[asyncio.Event], Coroutine[Any, Any, None]], *, name: str
) -> AsyncIterator[None]:
    """`work` runs while the block does; at its end it is told to leave, and waited for. Its failure
    is told and ends nothing."""
    leave = asyncio.Event()
    task = asyncio.create_task(work(leave), name=name)
    try:
        yield
    finally:
        leave.set()
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()):
            log.error("%s failed", name, exc_info=error)


class SharedAnswer(Generic[T]):
    """One question at a time: who asks meanwhile waits for the same answer.

    Who stops waiting does not stop the asking: to withdraw a question from a peer that no longer
    answers can take as long as the answer. The question itself must have an end of its own.
    """

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._ask = ask
        self._asking: asyncio.Task[T] | None = None

    async def get(self, *, within_seconds: float) -> T:
        """The answer, or TimeoutError."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
            # Nobody may be left to hear why it failed.
            self._asking.add_done_callback(lambda asking: asking.cancelled() or asking.exception())
        async with asyncio.timeout(within_seconds):
            return await asyncio.shield(self._asking)

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})


async def until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """`work` to its end, or cancelled as soon as `stop` is set; its error is raised here."""
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        working.cancel()
        await asyncio.wait({working, stopping})
    if not working.cancelled():
        working.result()


def end_within(seconds: float, status: int) -> None:
    """This process ends, whatever it waits for then: at once if it must. Its children leave by
    themselves."""

    def end() -> None:
        sleep_thread(seconds)
        os._exit(status)

    threading.Thread(target=end, name="end", daemon=True).start()


@contextmanager
def stop_signals(*, first: Callable[[], None], again: Callable[[], None]) -> Iterator[None]:
    """The first signal asks for a clean stop, each further one for a quick one."""
    loop = asyncio.get_running_loop()
    asked = False

    def hear() -> None:
        nonlocal asked
        react = again if asked else first
        asked = True
        react()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, hear)
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
