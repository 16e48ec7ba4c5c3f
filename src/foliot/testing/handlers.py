"""Attempts for tests of what runs handlers: tasks made up, reports heard, processes counted."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from foliot.runtime.chance import fresh_id
from foliot.testing.commands import is_alive
from foliot.worker.hosts.pool import HostLimits
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.tasks import LogRecord, LogSource, Task

MARK: Final = "FOLIOT_TEST_MARK"
WITHIN_SECONDS: Final = 10.0


def a_task(handler: str, payload: object = None, **changes: Any) -> Task:  # noqa: ANN401 - a Task's
    values: dict[str, Any] = {
        "execution_id": fresh_id(),
        "fence": 1,
        "attempt_number": 1,
        "max_attempts": 4,
        "tenant_id": fresh_id(),
        "job_id": fresh_id(),
        "job_name": f"job of {handler}",
        "handler": handler,
        "payload": payload,
        "timeout_seconds": 20.0,
        "cancel_grace_seconds": 20.0,
        "run_alone": False,
        "scheduled_time": datetime(2026, 1, 1, tzinfo=UTC),
        "idempotency_key": "key",
        "trigger": "MANUAL",
    }
    return Task(**values | changes)


class Heard:
    """What was reported of one attempt; one can wait for it."""

    def __init__(self) -> None:
        self.starts = 0
        self.records: list[LogRecord] = []
        self.steps: list[tuple[float | None, str]] = []
        self._changed = asyncio.Event()

    def started(self, task: Task) -> None:  # noqa: ARG002 - one attempt each
        self.starts += 1
        self._changed.set()

    def logged(self, task: Task, records: Sequence[LogRecord]) -> None:  # noqa: ARG002
        self.records += records
        self._changed.set()

    def progressed(self, task: Task, percent: float | None, message: str) -> None:  # noqa: ARG002
        self.steps.append((percent, message))
        self._changed.set()

    def lines(self, source: LogSource | None = None) -> list[str]:
        return [one.message for one in self.records if source in (None, one.source)]

    async def line(self, words: str) -> str:
        """The first line with these words, as soon as it is there."""
        async with asyncio.timeout(WITHIN_SECONDS):
            while True:
                for line in self.lines():
                    if words in line:
                        return line
                self._changed.clear()
                await self._changed.wait()

    async def start(self) -> None:
        async with asyncio.timeout(WITHIN_SECONDS):
            while not self.starts:
                self._changed.clear()
                await self._changed.wait()


def marked_processes(mark: str) -> set[int]:
    """Every process that has inherited the mark, and so descends from who was started with it."""
    wanted = f"{MARK}={mark}".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                has_it = wanted in (entry / "environ").read_bytes().split(b"\0")
            except OSError:  # it has ended, or is none of ours
                continue
            if has_it and is_alive(int(entry.name)):
                found.add(int(entry.name))
    return found


@asynccontextmanager
async def running(
    *targets: Path | str, limits: HostLimits | None = None
) -> AsyncIterator[HandlerRunner]:
    """A runner of these modules; at its end none of its processes is left."""
    mark = str(fresh_id())
    hidden = {"FOLIOT_DATABASE_URL": "postgresql://secret", "FOLIOT_SECRET_KEYS": "k1:secret"}
    environ = dict(os.environ) | {MARK: mark} | hidden
    runner = HandlerRunner([str(target) for target in targets], environ=environ, limits=limits)
    await runner.start()
    try:
        yield runner
    finally:
        await runner.close(grace_seconds=0)
    if left := marked_processes(mark):
        raise AssertionError(f"processes are left: {left}")
