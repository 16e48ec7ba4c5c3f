"""What is logged or printed during an attempt, kept with the attempt.

Where many attempts share a host, the context variable says whose words they are. Where one runs at
a time they are its own, from whichever thread they come, and what goes to the descriptors of output
is read by the worker: that has the words of C code and of subprocesses too.
"""

import io
import logging
import sys
from collections.abc import Callable
from typing import Final, TextIO

from foliot.worker.hosts.attempt import Attempt
from foliot.worker.tasks import LogSource

Whose = Callable[[], Attempt | None]
_FORMATTER: Final = logging.Formatter()


def capture_logging(whose: Whose) -> None:
    root = logging.getLogger()
    for handler in list(root.handlers):
        # It would print what is captured: each record would be kept twice.
        if isinstance(handler, logging.StreamHandler) and handler.stream in _standard_streams():
            root.removeHandler(handler)
    root.addHandler(_LogHandler(whose))
    if root.level == logging.WARNING:
        root.setLevel(logging.INFO)  # nobody has chosen


def capture_prints(whose: Whose) -> None:
    """For a shared host: print and the like. Subprocesses write to the worker's own output."""
    sys.stdout = _Stream(whose, LogSource.STDOUT, sys.stdout)
    sys.stderr = _Stream(whose, LogSource.STDERR, sys.stderr)


def write_prints_through() -> None:
    """For a host whose output is read by the worker: nothing waits in a buffer to be lost."""
    for name in ("stdout", "stderr"):
        fd = {"stdout": 1, "stderr": 2}[name]
        stream = io.TextIOWrapper(
            io.FileIO(fd, "w", closefd=False),
            encoding="utf-8",
            errors="backslashreplace",
            write_through=True,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _standard_streams() -> tuple[TextIO | None, ...]:
    return (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)


class _LogHandler(logging.Handler):
    def __init__(self, whose: Whose) -> None:
        super().__init__()
        self._whose = whose
        self.setFormatter(_FORMATTER)

    def emit(self, record: logging.LogRecord) -> None:
        attempt = self._whose()
        try:
            if attempt is not None:
                attempt.log(record.levelname, LogSource.LOG, self.format(record))
            elif record.levelno >= logging.WARNING and sys.__stderr__ is not None:
                sys.__stderr__.write(f"{self.format(record)}\n")
        except Exception:  # noqa: BLE001 - logging's own way: told on stderr, raised to nobody
            self.handleError(record)


class _Stream(io.TextIOBase):
    """Looks like standard output; of an attempt it takes the words, of others it passes them on."""

    def __init__(self, whose: Whose, source: LogSource, real: TextIO) -> None:
        self._whose = whose
        self._source = source
        self._real = real

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def buffer(self) -> object:
        return self._real.buffer

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._real.fileno()

    def isatty(self) -> bool:
        return False

    def flush(self) -> None:
        if self._whose() is None:
            self._real.flush()

    def write(self, text: str, /) -> int:
        attempt = self._whose()
        if attempt is None:
            return self._real.write(text)
        attempt.write(self._source, text)
        return len(text)
