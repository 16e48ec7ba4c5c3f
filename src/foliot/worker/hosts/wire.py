"""One end of a socket on a loop: frames in, and messages out, written once per turn or frame."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, Final

from foliot.worker.hosts.messages import MESSAGES_MAX, FrameReader, encode_frames

log = logging.getLogger(__name__)

# A thousand messages or so: the worker has other work to get to.
_READ_BYTES: Final = 64 * 1024
# Of one socket at a time, so that a talkative peer does not keep the others waiting.
_DRAIN_READS_MAX: Final = 256


class Unsent:
    """Bytes that the other side has yet to take."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self._bytes)

    def add(self, frame: bytes) -> None:
        self._bytes += frame

    def send(self) -> bool:
        """Whether all of it is gone. What a closed peer would have got is forgotten."""
        try:
            while self._bytes:
                del self._bytes[: self._channel.send(self._bytes)]
        except BlockingIOError:
            return False
        except OSError:
            self._bytes.clear()
        return True


class Wire:
    """The worker's end. `on_end` is called when the peer closes or says what cannot be used,
    `on_refused` when a message cannot be written."""

    def __init__(
        self,
        channel: socket.socket,
        on_frame: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_refused: Callable[[Any, str], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._channel = channel
        self._on_frame = on_frame
        self._on_end = on_end
        self._on_refused = on_refused
        self._frames = FrameReader()
        self._gathered: list[Any] = []
        self._unsent = Unsent(channel)
        self._is_open = True
        channel.setblocking(False)
        self._loop.add_reader(channel, self._read)

    def say(self, message: object) -> None:
        if not self._gathered:
            self._loop.call_soon(self._turn)
        self._gathered.append(message)
        if len(self._gathered) >= MESSAGES_MAX:
            self._turn()

    def drain(self) -> None:
        """Reads what is there already, without waiting for more."""
        for _ in range(_DRAIN_READS_MAX):
            if not self._is_open or not self._read():
                return

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._channel)
            self._loop.remove_writer(self._channel)
            self._channel.close()

    def _turn(self) -> None:
        gathered, self._gathered = self._gathered, []
        if not gathered or not self._is_open:
            return
        self._unsent.add(self._encode(gathered))
        if not self._unsent.send():
            self._loop.add_writer(self._channel, self._go_on)

    def _encode(self, messages: list[Any]) -> bytes:
        """One that cannot be written (a number beyond 64 bits) does not keep the others."""
        try:
            return encode_frames(messages)
        except (OverflowError, TypeError, ValueError, RecursionError) as error:
            if len(messages) > 1:
                return b"".join(self._encode([message]) for message in messages)
            self._on_refused(messages[0], str(error))
            return b""

    def _go_on(self) -> None:
        if self._unsent.send():
            self._loop.remove_writer(self._channel)

    def _read(self) -> bool:
        """Whether something was read."""
        try:
            data = self._channel.recv(_READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._stop_reading()
            return False
        try:
            for frame in self._frames.feed(data):
                self._on_frame(frame)
        except Exception:  # a peer that speaks nonsense is as good as gone
            log.exception("what a process said could not be used")
            self._stop_reading()
            return False
        return True

    def _stop_reading(self) -> None:
        if self._is_open:
            self._loop.remove_reader(self._channel)
            self._on_end()
