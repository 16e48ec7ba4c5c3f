"""One attempt inside a host: its context, its clock, its words, and the cap on them.

Lines are cut at 16 KB and an attempt's output at 10 MB. The worker keeps the same count and says
where the output was cut; counting here too keeps a talkative handler from filling the socket.
"""

from asyncio import SubprocessTransport
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Final, Protocol

from foliot.core.storable import clean_text
from foliot.runtime.clock import SystemClock
from foliot.worker.context import PROGRESS_CHARS_MAX, Context, Link
from foliot.worker.hosts.messages import Line, Logged, News, Progressed
from foliot.worker.hosts.output import LINE_CHARS_MAX, OUTPUT_BYTES_MAX, Cutter, cost
from foliot.worker.tasks import LogSource, Task

_CLOCK: Final = SystemClock()
# The worker gets to its other work between so many.
LINES_AT_ONCE: Final = 500


class Speaker(Protocol):
    """Says things to the worker; may be called from any thread of the host."""

    def say(self, news: News) -> None: ...


class Attempt:
    def __init__(
        self,
        ticket: int,
        task: Task,
        speaker: Speaker,
        should_stop: Callable[[], bool] | None = None,
    ) -> None:
        self.ticket = ticket
        self.task = task
        self.stop_asked = False
        self.processes: list[SubprocessTransport] = []  # that it has started on its loop
        self._speaker = speaker
        self._began_at = _CLOCK.monotonic()
        self._left = OUTPUT_BYTES_MAX
        self._cutters: dict[LogSource, Cutter] = {}
        link = Link(self._seconds_left, should_stop or self._is_stop_asked, self._progress)
        self.context = Context(task, link)

    @property
    def is_heard(self) -> bool:
        """Whether more of its output would be kept."""
        return self._left >= 0

    def log(self, level: str, source: LogSource, message: str) -> None:
        if not self.is_heard:
            return
        self._log(level, source, [message])

    def write(self, source: LogSource, text: str) -> None:
        """Text as it is printed: lines are told when they are whole, the last one at the end."""
        cutter = self._cutters.get(source)
        if cutter is None:
            cutter = self._cutters[source] = Cutter()
        lines = cutter.feed(text)
        for start in range(0, len(lines), LINES_AT_ONCE):
            if self.is_heard:
                self._log("INFO", source, lines[start : start + LINES_AT_ONCE])

    def end_processes(self) -> None:
        for process in self.processes:
            if process.get_returncode() is None:
                # One that has gained other rights, as by sudo, is not ours to end.
                with suppress(ProcessLookupError, PermissionError):
                    process.kill()

    def flush(self) -> None:
        for source, cutter in self._cutters.items():
            for line in cutter.rest():
                self.log("INFO", source, line)

    def _log(self, level: str, source: LogSource, messages: Sequence[str]) -> None:
        at = _CLOCK.monotonic() - self._began_at
        told: list[Line] = []
        for message in messages:
            text = clean_text(message, LINE_CHARS_MAX)
            self._left -= cost(text)
            told.append(Line(at, clean_text(level, 20), source, text))
            if not self.is_heard:
                break
        self._speaker.say(Logged(self.ticket, told))

    def _seconds_left(self) -> float:
        return self._began_at + self.task.timeout_seconds - _CLOCK.monotonic()

    def _is_stop_asked(self) -> bool:
        return self.stop_asked

    def _progress(self, percent: float | None, message: str) -> None:
        self._speaker.say(Progressed(self.ticket, percent, clean_text(message, PROGRESS_CHARS_MAX)))


# Whose code runs here: inherited by tasks, and by threads that asyncio starts.
CURRENT: Final[ContextVar[Attempt | None]] = ContextVar("foliot_attempt", default=None)
