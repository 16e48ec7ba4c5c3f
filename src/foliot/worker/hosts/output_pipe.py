"""What a host writes to a descriptor of output, read by the worker: lines as they come.

It is read to the end even when nobody wants it any more, since a full pipe would stop the handler.
A flood of short lines is told a few at a time, so that the worker gets to its other work.
"""

import asyncio
import codecs
import os
from collections.abc import Callable
from typing import Final

from foliot.worker.hosts.output import Cutter

_READ_BYTES: Final = 64 * 1024
_DRAIN_READS_MAX: Final = 16
LINES_AT_ONCE: Final = 500
# Of what came last and was not told yet when the attempt ended.
LAST_LINES_MAX: Final = 2000


class OutputPipe:
    def __init__(self, on_lines: Callable[[list[str]], bool]) -> None:
        """`on_lines` says whether it wants to hear more."""
        self._read_fd, self.write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        self._loop = asyncio.get_running_loop()
        self._on_lines = on_lines
        self._is_open = True
        self.begin()
        self._loop.add_reader(self._read_fd, self._read)

    def begin(self) -> None:
        """From here on the output is another attempt's."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._cutter = Cutter()
        self._untold: list[str] = []
        self._is_wanted = True

    def drain(self) -> None:
        """What was written before now is told, the last line too; of too many lines the first."""
        for _ in range(_DRAIN_READS_MAX):
            if not self._is_open or not self._take():
                break
        lines = self._untold
        lines += self._cutter.feed(self._decoder.decode(b"", final=True))
        lines += self._cutter.rest()
        if len(lines) > LAST_LINES_MAX:
            left = len(lines) - LAST_LINES_MAX
            lines[LAST_LINES_MAX:] = [f"({left} lines more came too fast to be kept)"]
        self._untold = []
        if self._is_open:
            self._tell(lines)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._read_fd)
            os.close(self._read_fd)

    def _read(self) -> None:
        if self._take() and self._untold:
            self._tell_some()

    def _take(self) -> bool:
        """Whether there was something."""
        try:
            data = os.read(self._read_fd, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._read_fd)
            return False
        if self._is_wanted:
            self._untold += self._cutter.feed(self._decoder.decode(data))
        return True

    def _tell_some(self) -> None:
        """What is left over is told in the next turn, and nothing is read before that."""
        if not self._is_open:
            return
        some, self._untold = self._untold[:LINES_AT_ONCE], self._untold[LINES_AT_ONCE:]
        self._tell(some)
        if self._untold and self._is_wanted:
            self._loop.remove_reader(self._read_fd)
            self._loop.call_soon(self._tell_some)
        else:
            self._untold = []
            self._loop.add_reader(self._read_fd, self._read)

    def _tell(self, lines: list[str]) -> None:
        if lines and self._is_wanted:
            self._is_wanted = self._on_lines(lines)
