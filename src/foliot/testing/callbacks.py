"""HTTP targets for tests: attempts made up, and what makes them, with loopback open to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

from foliot.core.allow_list import CLOSED, AllowList, read_allow_list
from foliot.core.model import HttpTarget
from foliot.runtime.clock import Clock, SystemClock
from foliot.testing.handlers import a_task
from foliot.testing.rows import DEFAULT_TENANT
from foliot.worker.http.destinations import Destinations
from foliot.worker.http.guard import Lookup
from foliot.worker.http.guards import Guards
from foliot.worker.http.requests import Sign
from foliot.worker.http.runner import HttpRunner
from foliot.worker.tasks import Task

LOOPBACK: Final = read_allow_list(("loopback",), "test")


def a_call(
    url: str,
    payload: object = None,
    *,
    method: str = "POST",
    headers: dict[str, str] | None = None,
    **changes: Any,  # noqa: ANN401 - a Task's
) -> Task:
    target = HttpTarget(url, method, headers or {})
    return a_task("", payload, http=target, **{"tenant_id": DEFAULT_TENANT} | changes)


@asynccontextmanager
async def http_runner(
    *,
    per_host: int = 64,
    clock: Clock | None = None,
    lookup: Lookup | None = None,
    sign: Sign | None = None,
) -> AsyncIterator[HttpRunner]:
    """What is held comes back without any spread."""
    clock = clock or SystemClock()

    async def read(_: UUID) -> AllowList:
        return CLOSED

    async def sign_for(_: UUID) -> Sign | None:
        return sign

    guards = Guards(LOOPBACK, read, clock, lookup)
    runner = HttpRunner(guards, Destinations(per_host, clock, lambda: 0.0), sign_for)
    await runner.start()
    try:
        yield runner
    finally:
        await runner.close(grace_seconds=0)
