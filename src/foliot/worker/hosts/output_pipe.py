"""What a host writes to a descriptor of output, read by the worker: lines as they come.

It is read to the end even when nobody wants it any more, since a full pipe would stop the handler.
"""

import asyncio
import codecs
import os
from collections.abc import Callable
from typing import Final

from foliot.worker.hosts.output import Cutter

_READ_BYTES: Final = 64 * 1024
_DRAIN_READS_MAX: Final = 16


class OutputPipe:
    def __init__(self, on_lines: Callable[[list[str]], bool]) -> None:
        """`on_lines` says whether it wants to hear more."""
        self._read_fd, self.write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        self._on_lines = on_lines
        self._is_open = True
        self.begin()
        asyncio.get_running_loop().add_reader(self._read_fd, self._read)

    def begin(self) -> None:
        """From here on the output is another attempt's."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._cutter = Cutter()
        self._is_wanted = True

    def drain(self) -> None:
        """What was written before now is told, the last line too."""
        for _ in range(_DRAIN_READS_MAX):
            if not self._is_open or not self._read():
                break
        self._tell(
            [*self._cutter.feed(self._decoder.decode(b"", final=True)), *self._cutter.rest()]
        )

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._read_fd)
            os.close(self._read_fd)

    def _read(self) -> bool:
        """Whether there was something."""
        try:
            data = os.read(self._read_fd, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            asyncio.get_running_loop().remove_reader(self._read_fd)
            return False
        if self._is_wanted:
            self._tell(self._cutter.feed(self._decoder.decode(data)))
        return True

    def _tell(self, lines: list[str]) -> None:
        if lines and self._is_wanted:
            self._is_wanted = self._on_lines(lines)
