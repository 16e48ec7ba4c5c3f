"""A host that runs one sync handler at a time, in its only thread: it can be killed at any moment.

It reads an order when it has nothing else to do. That it should stop is a flag on the board; what
it has to say is written at once, since nobody would be there to write it later.
"""

import inspect
import os
import threading
from collections.abc import Callable
from typing import Any, Final

from foliot.runtime.family import children
from foliot.runtime.service import run
from foliot.worker.app import Prepared
from foliot.worker.hosts.attempt import Attempt
from foliot.worker.hosts.board import Board
from foliot.worker.hosts.calling import call
from foliot.worker.hosts.capture import capture_logging, write_prints_through
from foliot.worker.hosts.messages import (
    ORDERS,
    Began,
    Begin,
    End,
    FrameReader,
    Leaving,
    News,
    Stopped,
    Unknown,
    encode_frames,
)
from foliot.worker.hosts.nursery import Cradle

_READ_BYTES: Final = 256 * 1024


class SoloHost:
    def __init__(self, cradle: Cradle, handlers: dict[str, Prepared]) -> None:
        self._channel = cradle.channel
        self._board = Board(cradle.board_fd)
        self._handlers = handlers
        self._process = os.getpid()
        self._attempt: Attempt | None = None
        # A handler's threads speak too, and a long word goes in several pieces.
        self._sending = threading.RLock()
        os.close(cradle.board_fd)

    def whose(self) -> Attempt | None:
        return self._attempt

    def say(self, news: News) -> None:
        self._send([news])

    def serve(self) -> None:
        frames = FrameReader()
        while data := self._channel.recv(_READ_BYTES):
            for frame in frames.feed(data):
                for order in ORDERS.decode(frame):
                    if isinstance(order, Begin):
                        self._run(order)

    def _run(self, order: Begin) -> None:
        handler = self._handlers.get(order.task.handler)
        if handler is None:
            self.say(Unknown(order.ticket))
            return
        if self._board.should_stop:  # it took too long to get here
            self.say(Stopped(order.ticket))
            return
        self.say(Began([order.ticket]))
        self._board.running = order.ticket
        attempt = Attempt(order.ticket, order.task, self, self._should_stop)
        self._attempt = attempt
        end = _to_its_end(handler, attempt)
        self._attempt = None
        self._board.running = 0
        self._send([Leaving(), end] if children() else [end])

    def _should_stop(self) -> bool:
        return self._board.should_stop

    def _send(self, news: list[News]) -> None:
        # A process that the handler has forked has nothing to say here.
        if os.getpid() != self._process:
            return
        try:
            with self._sending:
                self._channel.sendall(encode_frames(news))
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)


def run_solo_host(cradle: Cradle, handlers: dict[str, Prepared]) -> None:
    host = SoloHost(cradle, handlers)
    write_prints_through()
    capture_logging(host.whose)
    host.serve()


def _to_its_end(handler: Prepared, attempt: Attempt) -> End:
    """`call` waits for nothing here, so its first step is its last."""
    try:
        call(handler, attempt, _invoke, _invoke).send(None)
    except StopIteration as done:
        end: End = done.value
        return end
    raise RuntimeError("a sync handler waited")


async def _invoke(function: Callable[[], Any]) -> object:
    result = function()
    return run(result) if inspect.iscoroutine(result) else result
