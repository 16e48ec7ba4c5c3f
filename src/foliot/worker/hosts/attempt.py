"""One attempt inside a host: its context, its clock, its words, and the cap on them.

Lines are cut at 16 KB and an attempt's output at 10 MB. The worker keeps the same count and says
where the output was cut; counting here too keeps a talkative handler from filling the socket.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, Protocol

from foliot.core.storable import clean_text
from foliot.runtime.clock import SystemClock
from foliot.worker.context import PROGRESS_CHARS_MAX, Context, Link
from foliot.worker.hosts.messages import Line, Logged, News, Progressed
from foliot.worker.hosts.output import LINE_CHARS_MAX, OUTPUT_BYTES_MAX, Cutter, cost
from foliot.worker.tasks import LogSource, Task

_CLOCK: Final = SystemClock()


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
        self._speaker = speaker
        self._began_at = _CLOCK.monotonic()
        self._left = OUTPUT_BYTES_MAX
        self._cutters: dict[LogSource, Cutter] = {}
        link = Link(self._seconds_left, should_stop or self._is_stop_asked, self._progress)
        self.context = Context(task, link)

    def log(self, level: str, source: LogSource, message: str) -> None:
        if self._left < 0:
            return
        text = clean_text(message, LINE_CHARS_MAX)
        self._left -= cost(text)
        at = _CLOCK.monotonic() - self._began_at
        self._speaker.say(Logged(self.ticket, [Line(at, clean_text(level, 20), source, text)]))

    def write(self, source: LogSource, text: str) -> None:
        """Text as it is printed: lines are told when they are whole, the last one at the end."""
        cutter = self._cutters.get(source)
        if cutter is None:
            cutter = self._cutters[source] = Cutter()
        for line in cutter.feed(text):
            self.log("INFO", source, line)

    def flush(self) -> None:
        for source, cutter in self._cutters.items():
            for line in cutter.rest():
                self.log("INFO", source, line)

    def _seconds_left(self) -> float:
        return self._began_at + self.task.timeout_seconds - _CLOCK.monotonic()

    def _is_stop_asked(self) -> bool:
        return self.stop_asked

    def _progress(self, percent: float | None, message: str) -> None:
        self._speaker.say(Progressed(self.ticket, percent, clean_text(message, PROGRESS_CHARS_MAX)))


# Whose code runs here: inherited by tasks, and by threads that asyncio starts.
CURRENT: Final[ContextVar[Attempt | None]] = ContextVar("foliot_attempt", default=None)
