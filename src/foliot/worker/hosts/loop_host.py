"""A host that runs async handlers on a loop: many at once where it is shared, else one.

Before each step of a handler's code its ticket is put on the board, so that the worker can tell
who kept the loop or brought the process down. What is to be said is gathered and written once per
turn of the loop; a handler that keeps the loop has its words written as it goes.
"""

import asyncio
import inspect
import os
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Final

from foliot.runtime.family import children
from foliot.runtime.service import run
from foliot.worker.app import Kind, Prepared
from foliot.worker.hosts.attempt import CURRENT, Attempt
from foliot.worker.hosts.board import Board
from foliot.worker.hosts.calling import call
from foliot.worker.hosts.capture import capture_logging, capture_prints, write_prints_through
from foliot.worker.hosts.ends import HandlerLeft
from foliot.worker.hosts.host_loop import HostLoop
from foliot.worker.hosts.messages import (
    ORDERS,
    Began,
    Begin,
    FrameReader,
    Leaving,
    News,
    Order,
    Ping,
    Pong,
    Stop,
    Stopped,
    Unknown,
)
from foliot.worker.hosts.nursery import Cradle
from foliot.worker.hosts.speech import Speech

_READ_BYTES: Final = 256 * 1024
_THREADS_MAX: Final = 256


class LoopHost:
    def __init__(self, cradle: Cradle, handlers: dict[str, Prepared]) -> None:
        self._channel = cradle.channel
        self._board = Board(cradle.board_fd)
        self._is_shared = cradle.is_shared
        self._handlers = handlers
        self._running: dict[int, tuple[Attempt, asyncio.Task[None]]] = {}
        self._began: list[int] = []
        self._frames = FrameReader()
        self._threads = ThreadPoolExecutor(_THREADS_MAX, "handler")
        os.close(cradle.board_fd)

    def whose(self) -> Attempt | None:
        """Whose words are heard: of a host that is not shared, the words of the only one."""
        if self._is_shared or not self._running:
            return CURRENT.get()
        return next(iter(self._running.values()))[0]

    async def serve(self) -> None:
        """Until the worker closes its end."""
        loop = asyncio.get_running_loop()
        self._channel.setblocking(False)
        self._over = asyncio.Event()
        self._speech = Speech(loop, self._channel, self._take_began)
        loop.set_task_factory(self._make_task)  # type: ignore[arg-type] # its options vary
        async with asyncio.TaskGroup() as self._group:
            loop.add_reader(self._channel, self._read)
            status = 1
            try:
                await self._over.wait()
                status = 0
            finally:
                # What still runs has nobody left to hear of it. Where a handler has stopped the
                # loop or cancelled everybody, the others must not say that they failed.
                os._exit(status)

    def _read(self) -> None:
        try:
            data = self._channel.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self._over.set()
            return
        for frame in self._frames.feed(data):
            for order in ORDERS.decode(frame):
                self._heed(order)
        self._speech.call()

    def _heed(self, order: Order) -> None:
        match order:
            case Begin():
                self._begin(order)
            case Stop():
                self._stop(order.ticket)
            case Ping():
                self._speech.say(Pong(order.number))

    def _begin(self, order: Begin) -> None:
        handler = self._handlers.get(order.task.handler)
        if handler is None:
            self._speech.say(Unknown(order.ticket))
            return
        attempt = Attempt(order.ticket, order.task, self._speech)
        running = self._group.create_task(self._run(handler, attempt))
        self._running[order.ticket] = (attempt, running)

    def _stop(self, ticket: int) -> None:
        if ticket not in self._running:
            return
        attempt, running = self._running[ticket]
        attempt.stop_asked = True
        # A thread cannot be interrupted: its handler looks at the flag, or the host is killed.
        if self._handlers[attempt.task.handler].kind is not Kind.THREAD:
            running.add_done_callback(lambda _: self._never_began(ticket))
            running.cancel()

    def _never_began(self, ticket: int) -> None:
        """A task that is cancelled before its first step ends without a word of its own."""
        if self._running.pop(ticket, None) is not None:
            self._speech.say(Stopped(ticket))

    def _take_began(self) -> list[News]:
        """Those that have ended meanwhile have told more than that."""
        began = [ticket for ticket in self._began if ticket in self._running]
        self._began.clear()
        return [Began(began)] if began else []

    async def _run(self, handler: Prepared, attempt: Attempt) -> None:
        CURRENT.set(attempt)
        self._began.append(attempt.ticket)
        in_thread = handler.kind is Kind.THREAD
        end = await call(
            handler,
            attempt,
            self._invoke_in_thread if in_thread else self._invoke,
            self._invoke,
        )
        del self._running[attempt.ticket]
        attempt.end_processes()
        if not self._is_shared and children():
            self._speech.say(Leaving())
        self._speech.say(end)

    async def _invoke(self, function: Callable[[], Any]) -> object:
        attempt = CURRENT.get()
        ticket = attempt.ticket if attempt is not None else 0
        self._board.running = ticket
        try:
            result = function()
        finally:
            self._board.running = 0
        if not inspect.isawaitable(result):
            return result
        return await self._steps(result, ticket)

    async def _invoke_in_thread(self, function: Callable[[], Any]) -> object:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, copy_context().run, _ended, function)

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, Any],
        **options: Any,  # noqa: ANN401 - whatever this Python passes on
    ) -> asyncio.Task[Any]:
        """Tasks that a handler starts put its ticket on the board too."""
        context = options.get("context")
        attempt = CURRENT.get() if context is None else context.get(CURRENT)
        if attempt is not None:
            work = self._stepped(work, attempt.ticket)
        return asyncio.Task(work, loop=loop, **options)

    async def _stepped(self, work: Awaitable[Any], ticket: int) -> object:
        return await self._steps(work, ticket)

    @types.coroutine
    def _steps(self, work: Awaitable[Any], ticket: int) -> Generator[Any, Any, Any]:
        board = self._board
        iterator = work.__await__()
        value: object = None
        error: BaseException | None = None
        while True:
            outer, board.running = board.running, ticket
            try:
                waited = iterator.send(value) if error is None else iterator.throw(error)
            except StopIteration as done:
                return done.value
            except (SystemExit, KeyboardInterrupt) as left:
                raise HandlerLeft from left
            finally:
                board.running = outer
            value = error = None
            try:
                value = yield waited
            except GeneratorExit:
                iterator.close()
                raise
            except BaseException as thrown:  # noqa: BLE001 - thrown on, one step further in
                error = thrown


def _ended(function: Callable[[], Any]) -> object:
    """A future cannot carry the end of an iterator: who waits for it would wait for ever."""
    try:
        return function()
    except StopIteration as stopped:
        raise RuntimeError("the handler raised StopIteration") from stopped


def run_loop_host(cradle: Cradle, handlers: dict[str, Prepared]) -> None:
    host = LoopHost(cradle, handlers)
    if cradle.is_shared:
        capture_prints(host.whose)
    else:
        write_prints_through()
    capture_logging(host.whose)
    run(host.serve(), loop_factory=HostLoop)
