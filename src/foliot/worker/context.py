"""What a handler may know and ask about the attempt it is making, and how it may end it.

A handler gets the context by a parameter annotated `Context`. Nothing here reaches the database:
what a handler says goes to the process that started it.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from foliot.core.errors import FoliotError, InvalidInput
from foliot.worker.tasks import Task

PROGRESS_CHARS_MAX: Final = 1000


@dataclass(eq=False)
class DoNotRetry(FoliotError):
    """Raised by a handler: it has failed, and another attempt would fail too."""

    reason: str = ""

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class Snooze(FoliotError):
    """Raised by a handler: run it again in `seconds`; this one costs no attempt."""

    seconds: float

    def __str__(self) -> str:
        return f"run again in {self.seconds:g} s"


@dataclass(frozen=True, slots=True)
class Link:
    """How the context of an attempt reaches out of its handler."""

    seconds_left: Callable[[], float]
    is_cancelled: Callable[[], bool]
    progress: Callable[[float | None, str], None]


class Context:
    """One attempt, as its handler sees it."""

    __slots__ = ("_link", "_logger", "_task")

    def __init__(self, task: Task, link: Link) -> None:
        self._task = task
        self._link = link
        self._logger: logging.Logger | None = None

    @property
    def execution_id(self) -> UUID:
        return self._task.execution_id

    @property
    def job_id(self) -> UUID:
        return self._task.job_id

    @property
    def job_name(self) -> str:
        return self._task.job_name

    @property
    def handler(self) -> str:
        return self._task.handler

    @property
    def tenant_id(self) -> UUID:
        return self._task.tenant_id

    @property
    def attempt_number(self) -> int:
        """1 for the first attempt."""
        return self._task.attempt_number

    @property
    def max_attempts(self) -> int:
        return self._task.max_attempts

    @property
    def is_last_attempt(self) -> bool:
        return self._task.attempt_number >= self._task.max_attempts

    @property
    def scheduled_time(self) -> datetime:
        """The instant this execution is for, in UTC; not the time it began."""
        return self._task.scheduled_time

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this execution: for whatever must not do it twice."""
        return self._task.idempotency_key

    @property
    def fence(self) -> int:
        """Rises with every attempt: whoever has seen a higher one may refuse this one."""
        return self._task.fence

    @property
    def trigger(self) -> str:
        return self._task.trigger

    @property
    def trace_id(self) -> str | None:
        return self._task.trace_id

    @property
    def tags(self) -> tuple[str, ...]:
        return self._task.tags

    @property
    def labels(self) -> Mapping[str, str]:
        return self._task.labels

    @property
    def deadline_seconds(self) -> float:
        """How many seconds are left until this attempt is told to stop; never below zero."""
        return max(0.0, self._link.seconds_left())

    @property
    def cancelled(self) -> bool:
        """Whether this attempt was told to stop. A sync handler should look now and then, and
        return; an async one is cancelled where it awaits."""
        return self._link.is_cancelled()

    @property
    def logger(self) -> logging.Logger:
        """What is logged during an attempt is kept with it, whichever logger it comes from."""
        if self._logger is None:
            self._logger = logging.getLogger(f"foliot.handler.{self._task.handler}")
        return self._logger

    def progress(self, percent: float | None, message: str = "") -> None:
        """Tell how far it has come: 0 to 100, or None where nobody knows."""
        if percent is not None and not 0 <= percent <= 100:
            raise InvalidInput(f"{percent!r} is not a percentage", field="percent", hint="0 to 100")
        self._link.progress(None if percent is None else float(percent), message)
