"""What a loop host says, gathered and written once per turn of its loop, or when it is a frame.

What a handler logs or prints is written at once: it may be the last thing it does, or it may keep
the loop so that no turn ends. Of its steps only the last in a turn is told.
"""

import asyncio
import os
import socket
import threading
from collections.abc import Callable

from foliot.worker.hosts.messages import (
    MESSAGES_MAX,
    Logged,
    News,
    Progressed,
    Returned,
    encode_frames,
)
from foliot.worker.hosts.wire import Unsent


class Speech:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        channel: socket.socket,
        first: Callable[[], list[News]],
    ) -> None:
        """`first` is asked at every writing for what should come before the rest."""
        self._loop = loop
        self._channel = channel
        self._first = first
        self._process = os.getpid()
        self._thread = threading.get_ident()
        self._lock = threading.RLock()
        self._gathered: list[News] = []
        self._steps: dict[int, int] = {}  # ticket -> where its last step is gathered
        self._unsent = Unsent(channel)
        self._is_called = False

    def say(self, news: News) -> None:
        # A process that a handler has forked has nothing to say here.
        if os.getpid() != self._process:
            return
        with self._lock:
            match news:
                case Returned():  # nearly always; to ask what it is not takes longer
                    self._gathered.append(news)
                    if len(self._gathered) >= MESSAGES_MAX:
                        self._write()
                case Progressed():
                    self._gather_step(news)
                case Logged():
                    self._gathered.append(news)
                    self._write()
                case _:
                    self._gathered.append(news)
        self.call()

    def call(self) -> None:
        """Has what was gathered written when this turn of the loop is over."""
        if self._is_called:
            return
        self._is_called = True
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self._turn)
        else:
            self._loop.call_soon_threadsafe(self._turn)

    def _gather_step(self, news: Progressed) -> None:
        place = self._steps.get(news.ticket)
        if place is None:
            self._steps[news.ticket] = len(self._gathered)
            self._gathered.append(news)
        else:
            self._gathered[place] = news

    def _turn(self) -> None:
        self._is_called = False
        with self._lock:
            self._gathered[:0] = self._first()
            self._write()
            if self._unsent:
                self._loop.add_writer(self._channel, self._go_on)

    def _go_on(self) -> None:
        with self._lock:
            if self._unsent.send():
                self._loop.remove_writer(self._channel)

    def _write(self) -> None:
        if self._gathered:
            self._unsent.add(encode_frames(self._gathered))
            self._gathered.clear()
            self._steps.clear()
        self._unsent.send()
