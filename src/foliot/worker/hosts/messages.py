"""What the worker and its hosts say to each other, and how it is written on a socket.

A frame is four bytes of length and a list of up to 64 messages: whoever has much to say says it at
once. An attempt goes by its ticket, a number that the worker gives out once.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foliot.core.errors import FoliotError
from foliot.worker.tasks import Task

_LENGTH_BYTES: Final = 4
# Of one frame. As many are sent at once, so that the other side can begin meanwhile.
MESSAGES_MAX: Final = 64
# Far above so many payloads or results of a megabyte: more is a host gone mad.
FRAME_BYTES_MAX: Final = 256 * 1024 * 1024


class FrameTooLarge(FoliotError):
    """What came is not one of our frames."""


class _Message(msgspec.Struct, array_like=True, gc=False, tag=True):
    """Written as a list that begins with the message's name."""


# To a host.


class Begin(_Message):
    ticket: int
    task: Task


class Stop(_Message):
    """Told to one attempt: it should end."""

    ticket: int


class Ping(_Message):
    number: int


Order = Begin | Stop | Ping


# From a host.


class Began(_Message):
    tickets: list[int]


class Returned(_Message):
    """`result` is JSON, or a marker in place of what could not be sent."""

    ticket: int
    result: Any
    is_marker: bool = False


class Raised(_Message):
    ticket: int
    error_type: str
    message: str
    do_not_retry: bool


class Snoozing(_Message):
    ticket: int
    seconds: float


class Stopped(_Message):
    """It ended because it was told to."""

    ticket: int


class Unknown(_Message):
    """There is no such handler here."""

    ticket: int


class Line(_Message):
    at_seconds: float
    level: str
    source: str
    message: str


class Logged(_Message):
    ticket: int
    lines: list[Line]


class Progressed(_Message):
    ticket: int
    percent: float | None
    message: str


class Pong(_Message):
    number: int


class Leaving(_Message):
    """This host will do nothing more: what it ran has left something behind."""


End = Returned | Raised | Snoozing | Stopped | Unknown
News = Began | End | Logged | Progressed | Pong | Leaving


# To and from the nursery.


class Fork(_Message):
    """With it come the descriptors of the host's socket and board and, unless many share the host,
    of its output and error output."""

    host: int
    is_async: bool
    is_shared: bool


class Kill(_Message):
    host: int


class Imported(_Message):
    """Names of the handlers, with their kinds; `threads` counts those that importing has left."""

    handlers: dict[str, tuple[str, bool]]
    threads: int


class NotImported(_Message):
    target: str
    reason: str
    trace: str


class Forked(_Message):
    host: int
    pid: int


class Exited(_Message):
    """`status` as a shell knows it: negative is the signal that ended it."""

    host: int
    status: int
    reason: str = ""


Request = Fork | Kill | Ping
Reply = Imported | NotImported | Forked | Exited | Pong


_ENCODER: Final = msgspec.msgpack.Encoder()
ORDERS: Final = msgspec.msgpack.Decoder(list[Order])
NEWS: Final = msgspec.msgpack.Decoder(list[News])
REQUESTS: Final = msgspec.msgpack.Decoder(list[Request])
REPLIES: Final = msgspec.msgpack.Decoder(list[Reply])


def encode_frames(messages: Sequence[_Message]) -> bytes:
    if len(messages) > MESSAGES_MAX:
        starts = range(0, len(messages), MESSAGES_MAX)
        return b"".join(encode_frames(messages[n : n + MESSAGES_MAX]) for n in starts)
    body = _ENCODER.encode(messages)
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


class FrameReader:
    """Takes bytes as they come and gives frames as they are whole."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        self._buffer += data
        frames: list[bytes] = []
        start, size = 0, len(self._buffer)
        while size - start >= _LENGTH_BYTES:
            body = start + _LENGTH_BYTES
            length = int.from_bytes(self._buffer[start:body], "big")
            if length > FRAME_BYTES_MAX:
                raise FrameTooLarge
            if size < body + length:
                break
            frames.append(bytes(self._buffer[body : body + length]))
            start = body + length
        if start:
            del self._buffer[:start]
        return frames
