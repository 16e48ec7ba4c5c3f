"""What a program writes: passed on as it comes, its beginning and its end kept for the result.

It is read to the end whether anybody wants it or not, since a full pipe would stop the program.
"""

import asyncio
import codecs
import json
import os
from typing import Any, Final

from foliot.core.model import Json
from foliot.core.storable import RESULT_BYTES_MAX, to_storable
from foliot.worker.hosts.attempt import Attempt
from foliot.worker.tasks import LogSource

TAIL_BYTES: Final = 4096
_READ_BYTES: Final = 64 * 1024


class Stream:
    def __init__(self, attempt: Attempt, source: LogSource) -> None:
        self._read_fd, self.write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        self._attempt = attempt
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = Kept()
        self._is_listening = False

    def listen(self) -> None:
        """The program has its own copy of the other end by now."""
        self._end_writing()
        self._is_listening = True
        asyncio.get_running_loop().add_reader(self._read_fd, self._take)

    def close(self) -> None:
        """With what was written before now."""
        self._end_writing()
        while self._is_listening and self._take():
            pass
        self._stop_listening()
        os.close(self._read_fd)
        self._pass_on(b"", final=True)

    def as_json(self) -> Json:
        return self._kept.as_json()

    def tail(self) -> str:
        return self._kept.tail()

    def _take(self) -> bool:
        """Whether there was something."""
        try:
            data = os.read(self._read_fd, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._stop_listening()
            return False
        self._kept.add(data)
        self._pass_on(data)
        return True

    def _pass_on(self, data: bytes, *, final: bool = False) -> None:
        if self._attempt.is_heard:
            self._attempt.write(self._source, self._decoder.decode(data, final))

    def _end_writing(self) -> None:
        if self.write_fd >= 0:
            os.close(self.write_fd)
            self.write_fd = -1

    def _stop_listening(self) -> None:
        if self._is_listening:
            self._is_listening = False
            asyncio.get_running_loop().remove_reader(self._read_fd)


class Kept:
    """Of a stream of bytes of any length: all if that is little, and the last lines."""

    def __init__(self) -> None:
        self._size = 0
        self._head = bytearray()
        self._tail = b""

    def add(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= RESULT_BYTES_MAX:
            self._head += data
        # One byte more than is shown: whether a line begins with the tail can be seen.
        self._tail = (self._tail + data)[-TAIL_BYTES - 1 :]

    def as_json(self) -> Json:
        """The object or list that all of it is; None if it is anything else."""
        text = bytes(self._head).strip()
        if self._size > RESULT_BYTES_MAX or text[:1] not in (b"{", b"["):
            return None
        try:
            value = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None
        return None if to_storable(value, RESULT_BYTES_MAX).truncated else value

    def tail(self) -> str:
        """Whole lines: half of one may begin with the second half of a secret, which nobody would
        know again. Of a longer line there is nothing."""
        shown = self._tail
        if self._size > TAIL_BYTES:
            shown = shown[shown.find(b"\n") + 1 :] if b"\n" in shown else b""
        return shown.decode("utf-8", errors="replace").replace("\0", "\ufffd")


def _refuse(word: str) -> Any:  # noqa: ANN401 - it returns nothing
    raise ValueError(word)
