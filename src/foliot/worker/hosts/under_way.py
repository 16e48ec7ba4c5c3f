"""One attempt as the worker keeps it while a host makes it: its end, its words, why it should stop.

Words are gathered and told five times a second or by 64 KB; beyond 10 MB they are cut, once said.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from foliot.core.model import ErrorType, Failure
from foliot.worker.hosts.messages import (
    End,
    Line,
    Raised,
    Returned,
    Snoozing,
    Stopped,
    Unknown,
)
from foliot.worker.hosts.output import OUTPUT_BYTES_MAX, cost
from foliot.worker.tasks import (
    Cancelled,
    Ended,
    Failed,
    HandedBack,
    LogRecord,
    LogSource,
    Reporter,
    Snoozed,
    Succeeded,
    Task,
)

GATHERED_BYTES_MAX: Final = 64 * 1024
_CUT: Final = f"the output of this attempt is cut here, after {OUTPUT_BYTES_MAX // 1024**2} MB"


@dataclass(frozen=True, slots=True)
class Asked:
    """Why an attempt was asked to stop: its time is over, or somebody wants it cancelled.

    `too_early`: it had not even begun, so that its time cannot be over.
    """

    is_timeout: bool
    reason: str = ""
    too_early: bool = False


class Ending(asyncio.Future[Ended]):
    """The end to come. Who cancels it lets go of the attempt, which is then told to stop."""

    let_go: Callable[[], None]

    def cancel(self, msg: Any | None = None) -> bool:  # noqa: ANN401 - as its base has it
        if not self.done():
            self.let_go()
        return super().cancel(msg)


class UnderWay:
    __slots__ = (
        "_bytes",
        "_left",
        "_progress",
        "_records",
        "asked",
        "began_at",
        "ended",
        "has_begun",
        "is_heard",
        "ping",
        "placed_at",
        "reporter",
        "task",
        "ticket",
    )

    def __init__(
        self, ticket: int, task: Task, reporter: Reporter, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.ticket = ticket
        self.task = task
        self.reporter = reporter
        self.ended = Ending(loop=loop)
        self.has_begun = False
        self.asked: Asked | None = None
        self.ping = 0  # sent with the wish to stop: unanswered, the host stands still
        self.placed_at = self.began_at = loop.time()
        self.is_heard = True  # its output is not yet cut
        self._left = OUTPUT_BYTES_MAX
        self._records: list[LogRecord] = []
        self._bytes = 0
        self._progress: tuple[float | None, str] | None = None

    def begin(self, now: float) -> None:
        if not self.has_begun:
            self.has_begun = True
            self.began_at = now
            self.reporter.started(self.task)

    def hear_lines(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self._hear(LogRecord(line.at_seconds, line.level, LogSource(line.source), line.message))

    def hear_warning(self, now: float, words: str) -> None:
        self._hear(LogRecord(max(0.0, now - self.began_at), "WARNING", LogSource.LOG, words))

    def progress(self, percent: float | None, message: str) -> None:
        self._progress = (percent, message)

    def tell(self) -> None:
        """What was gathered goes to the reporter."""
        if self._records:
            records, self._records, self._bytes = self._records, [], 0
            self.reporter.logged(self.task, records)
        if self._progress is not None:
            progress, self._progress = self._progress, None
            self.reporter.progressed(self.task, *progress)

    def end(self, ended: Ended) -> None:
        self.tell()
        if not self.ended.done():
            self.ended.set_result(ended)

    def as_asked(self) -> Ended | None:
        """How it ends if it was asked to stop, whatever it has to say itself."""
        if self.asked is None:
            return None
        if not self.asked.is_timeout:
            return Cancelled(self.asked.reason)
        if self.asked.too_early:
            return HandedBack("its process did not get to it in time")
        return timed_out(self.task)

    def _hear(self, record: LogRecord) -> None:
        if not self.is_heard:
            return
        size = cost(record.message)
        self._left -= size
        if self._left < 0:
            self.is_heard = False
            record = LogRecord(record.at_seconds, "WARNING", LogSource.LOG, _CUT)
        self._records.append(record)
        self._bytes += size
        if self._bytes >= GATHERED_BYTES_MAX:
            self.tell()


def ended_by(end: End) -> Ended:
    match end:
        case Returned():
            return Succeeded(end.result, end.is_marker)
        case Raised():
            failure = Failure(ErrorType(end.error_type), end.message, do_not_retry=end.do_not_retry)
            return Failed(failure)
        case Snoozing():
            return Snoozed(end.seconds)
        case Stopped():
            return Cancelled()
        case Unknown():
            return HandedBack("no such handler")


def timed_out(task: Task) -> Failed:
    message = f"it was not done after {task.timeout_seconds:g} s"
    return Failed(Failure(ErrorType.TIMEOUT, message))
