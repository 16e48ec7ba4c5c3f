"""What attempts say while they run, written in batches, in the order they said it.

An attempt may say ten megabytes; then one line says that it was cut off. All attempts together may
have eight megabytes waiting for a database that is away or slow; what comes on top is dropped, and
one line says how much. A line is at most 16,384 characters.
"""

import logging
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from foliot.core.ids import WorkerId
from foliot.core.storable import clean_text
from foliot.store.database import Database
from foliot.store.errors import StatementFailed
from foliot.store.logs import LogLine, append
from foliot.worker.hand import Grip
from foliot.worker.tasks import LogRecord, LogSource

log = logging.getLogger(__name__)

LINE_CHARS_MAX: Final = 16_384
ATTEMPT_BYTES_MAX: Final = 10 * 1024 * 1024
WAITING_BYTES_MAX: Final = 8 * 1024 * 1024
BATCH_LINES: Final = 1000
BATCH_BYTES: Final = 1024 * 1024
CUT_OFF: Final = "the log is cut off here: an attempt may write 10 MB"


class LogBook:
    def __init__(self, database: Database, worker_id: WorkerId) -> None:
        self._database = database
        self._worker_id = worker_id
        self._lines: deque[LogLine] = deque()
        self._bytes = 0

    @property
    def waiting(self) -> int:
        return len(self._lines)

    def add(self, grip: Grip, records: Sequence[LogRecord]) -> None:
        for record in records:
            message = _shortened(record.message)
            size = len(message.encode())
            if grip.log_bytes > ATTEMPT_BYTES_MAX:
                return
            if self._bytes + size > WAITING_BYTES_MAX:
                grip.lines_dropped += 1
                continue
            self._tell_dropped(grip, record.at_seconds)
            grip.log_bytes += size
            if grip.log_bytes > ATTEMPT_BYTES_MAX:
                self._put(grip, record.at_seconds, "WARNING", LogSource.LOG, CUT_OFF)
                return
            self._put(grip, record.at_seconds, record.level, record.source, message)

    def end(self, grip: Grip, now: float) -> None:
        """Its attempt is over, at `now` of the monotonic clock: nothing more will be said."""
        self._tell_dropped(grip, now - (grip.begun_at or now))

    async def run_once(self) -> int:
        """Write a batch; how many lines are still waiting."""
        batch: list[LogLine] = []
        size = 0
        for line in self._lines:
            size += line.size
            if len(batch) == BATCH_LINES or (batch and size > BATCH_BYTES):
                break
            batch.append(line)
        if batch:
            try:
                await append(self._database, self._worker_id, batch)
            except StatementFailed:  # asked again, it would fail again
                log.exception("%d lines of executions cannot be written", len(batch))
            for _ in batch:
                self._bytes -= self._lines.popleft().size
        return len(self._lines)

    def _tell_dropped(self, grip: Grip, at_seconds: float) -> None:
        if grip.lines_dropped:
            words = f"{grip.lines_dropped} lines were dropped: too many wait to be written"
            self._put(grip, at_seconds, "WARNING", LogSource.LOG, words)
            grip.lines_dropped = 0

    def _put(
        self, grip: Grip, at_seconds: float, level: str, source: LogSource, message: str
    ) -> None:
        grip.log_lines += 1
        started_at = grip.started_at or grip.claimed.claimed_at
        line = LogLine(
            execution_id=grip.execution_id,
            fence=grip.fence,
            attempt_number=grip.claimed.attempt_number,
            seq=grip.log_lines,
            at=started_at + timedelta(seconds=max(0.0, at_seconds)),
            level=level,
            source=str(source),
            message=message,
        )
        self._lines.append(line)
        self._bytes += line.size


def _shortened(message: str) -> str:
    cleaned = clean_text(message, LINE_CHARS_MAX)
    return f"{cleaned}…" if len(message) > LINE_CHARS_MAX else cleaned
