"""One attempt of an HTTP target under way: what has come back, and whether somebody stopped it.

Its time is kept by a limit around everything that it does. To stop it is to leave it no time.
"""

import asyncio

from foliot.core.model import ErrorType, Failure, HttpTarget
from foliot.worker.http.answers import Answer
from foliot.worker.http.requests import Sign
from foliot.worker.tasks import Ended, Failed, LogRecord, LogSource, Task


class Call:
    def __init__(self, task: Task, target: HttpTarget) -> None:
        self.task = task
        self.target = target
        self.limit = asyncio.timeout(None)
        self.stopped: Ended | None = None
        self.answer: Answer | None = None
        self.sign: Sign | None = None
        self._began = 0.0

    @property
    def is_late(self) -> bool:
        """It ran out of time by itself."""
        return self.stopped is None and self.limit.expired()

    def stop(self, how: Ended) -> None:
        """It ends that way, at the next turn of the loop."""
        if self.stopped is None and not self.limit.expired():
            self.stopped = how
            self.limit.reschedule(asyncio.get_running_loop().time())

    def begin(self) -> None:
        """Its time counts from here."""
        self._began = asyncio.get_running_loop().time()
        if self.stopped is None:
            self.limit.reschedule(self._began + self.task.timeout_seconds)

    def out_of_time(self) -> Ended:
        if self.stopped is not None:
            return self.stopped
        words = f"no whole answer within {self.task.timeout_seconds:g} s"
        return self.broken(Failure(ErrorType.TIMEOUT, words))

    def line_about(self, failed: Failed) -> LogRecord:
        """For the log: what was wrong, and what the target had to say about it."""
        seconds = asyncio.get_running_loop().time() - self._began
        words = f"{failed.failure.message}: {failed.response['body_preview']}"
        return LogRecord(seconds, "ERROR", LogSource.LOG, words)

    def broken(self, failure: Failure) -> Ended:
        """It ended before the answer did. A status that says no is an answer by itself."""
        if self.answer is None:
            return Failed(failure)
        if not self.answer.is_success:
            return self.answer.end()
        return Failed(failure, self.answer.as_json())
