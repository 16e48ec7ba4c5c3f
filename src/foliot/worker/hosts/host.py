"""One host as the worker sees it: what it is busy with, what it says, whether it stands still."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from foliot.core.model import ErrorType
from foliot.core.storable import clean_text
from foliot.worker.hosts.board import Board
from foliot.worker.hosts.messages import (
    NEWS,
    Begin,
    Fork,
    Line,
    Logged,
    News,
    Order,
    Ping,
    Raised,
    Stop,
)
from foliot.worker.hosts.nursery_link import NurseryLink
from foliot.worker.hosts.output import LINE_CHARS_MAX
from foliot.worker.hosts.output_pipe import OutputPipe
from foliot.worker.hosts.under_way import UnderWay
from foliot.worker.hosts.wire import Wire
from foliot.worker.tasks import LogSource


@dataclass(frozen=True, slots=True)
class Shape:
    """What kind of host: one with a loop or without, for many attempts at once or for one."""

    is_async: bool
    is_shared: bool


class Host:
    def __init__(
        self, number: int, shape: Shape, nursery: NurseryLink, hear: Callable[["Host", News], None]
    ) -> None:
        """Raises OSError where the system has no more of something."""
        self.number = number
        self.shape = shape
        self.under_way: dict[int, UnderWay] = {}
        self.runs = 0
        self.is_leaving = False  # gets nothing more to do
        self.killed_for: UnderWay | None = None
        self.blocker = 0  # the ticket that kept the loop when the host was killed
        self.is_reported = False  # that it stands still
        self._nursery = nursery
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._is_drained = False
        self._pings = self._pongs = 0
        self._pinged_at = 0.0
        # Of what the host is given nothing stays open here; if there is no host, nothing at all.
        with ExitStack() as given, ExitStack() as undone:
            self.board, board_fd = Board.open()
            undone.callback(self.board.close)
            given.callback(os.close, board_fd)
            ours, theirs = socket.socketpair()
            given.callback(theirs.close)
            self._wire = Wire(ours, self._read, self._lost, self._not_written)
            undone.callback(self._wire.close)
            self._pipes: list[OutputPipe] = []
            for source in () if shape.is_shared else (LogSource.STDOUT, LogSource.STDERR):
                pipe = OutputPipe(partial(self._hear_output, source))
                undone.callback(pipe.close)
                given.callback(os.close, pipe.write_fd)
                self._pipes.append(pipe)
            fds = [theirs.fileno(), board_fd, *(pipe.write_fd for pipe in self._pipes)]
            nursery.fork(Fork(number, shape.is_async, shape.is_shared), fds)
            undone.pop_all()

    @property
    def is_for_one_run(self) -> bool:
        return any(one.task.run_alone for one in self.under_way.values())

    @property
    def is_at_work(self) -> bool:
        return any(one.has_begun for one in self.under_way.values())

    def begin(self, under_way: UnderWay) -> None:
        self.runs += 1
        self.under_way[under_way.ticket] = under_way
        if not self.shape.is_async:
            self.board.should_stop = False
        for pipe in self._pipes:
            pipe.begin()
        self._wire.say(Begin(under_way.ticket, under_way.task))

    def ask_to_stop(self, under_way: UnderWay) -> None:
        if self.shape.is_async:
            self._wire.say(Stop(under_way.ticket))
            self.send_ping()
            under_way.ping = self._pings
        else:
            self.board.should_stop = True

    def send_ping(self) -> None:
        if self._pings == self._pongs:
            self._pinged_at = self._loop.time()
        self._pings += 1
        self._wire.say(Ping(self._pings))

    def answered(self, number: int) -> None:
        self._pongs = number
        self._pinged_at = self._loop.time()

    def silent_seconds(self) -> float:
        """For how long it has owed an answer."""
        return 0.0 if self._pings == self._pongs else self._loop.time() - self._pinged_at

    def stands_still_since(self, ping: int) -> bool:
        return self._pongs < ping

    def drain_output(self) -> None:
        """What was written before the news that are being told: read once for all of them."""
        if self._is_drained:
            return
        self._is_drained = True
        for pipe in self._pipes:
            pipe.drain()

    def drain(self) -> None:
        """What a host had said before it died counts."""
        self._wire.drain()
        self._is_drained = False
        self.drain_output()

    def kill(self) -> None:
        self.is_leaving = True
        self._nursery.kill(self.number)

    def close(self) -> None:
        self._wire.close()
        for pipe in self._pipes:
            pipe.close()
        self.board.close()

    def _read(self, frame: bytes) -> None:
        self._is_drained = False
        for news in NEWS.decode(frame):
            self._hear(self, news)

    def _lost(self) -> None:
        """A host without a socket is of no use, whether it knows or not."""
        self.kill()

    def _not_written(self, order: Order, reason: str) -> None:
        if isinstance(order, Begin):
            message = f"the payload cannot be handed to a handler: {reason}"
            kind = ErrorType.INVALID_PAYLOAD
            self._hear(self, Raised(order.ticket, kind, message, do_not_retry=False))

    def _hear_output(self, source: LogSource, lines: list[str]) -> bool:
        """Whether more of it would be kept. Only a host for one attempt at a time has pipes."""
        for under_way in self.under_way.values():
            at = max(0.0, self._loop.time() - under_way.began_at)
            told = [Line(at, "INFO", source, clean_text(one, LINE_CHARS_MAX)) for one in lines]
            self._hear(self, Logged(under_way.ticket, told))
            return under_way.is_heard
        return False
