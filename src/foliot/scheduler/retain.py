"""Days are made ahead and what nobody needs is forgotten, a little at a time.

A pass does a bounded part of each, and the next goes on where it stopped. One that fails keeps no
other from being done: its error is raised when all have had their turn.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.errors import FoliotError
from foliot.core.ids import JobId
from foliot.store.database import Database
from foliot.store.forgetting import (
    BATCH,
    forget_deliveries,
    forget_limits,
    forget_requests,
    forget_starts,
    forget_workers,
)
from foliot.store.job_deletions import finish_deletions
from foliot.store.partitions import provide_partitions
from foliot.store.queue_clocks import BATCH as CLOCKS
from foliot.store.queue_clocks import forget_clocks

PAUSE_SECONDS: Final = 60.0
# While a pass finds more than it may do. A walk that meets nothing is in no hurry.
BUSY_PAUSE_SECONDS: Final = 1.0
# Batches of each kind in a pass: a few seconds' work at the most.
ROUNDS: Final = 20


@dataclass(frozen=True, slots=True)
class Retained:
    """How much of each was done; `more` is left for the next pass."""

    days: int = 0
    clocks: int = 0
    requests: int = 0
    workers: int = 0
    deliveries: int = 0
    limits: int = 0
    starts: int = 0
    cancelled: int = 0
    more: bool = False


class Retain:
    name: Final = "retain"

    def __init__(self, database: Database, *, rounds: int = ROUNDS, batch: int = BATCH) -> None:
        self._database = database
        self._rounds = rounds
        self._batch = batch
        self._limits_after: str | None = None
        self._starts_after: str | None = None
        self._deleted_after: JobId | None = None
        self._more = False
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> Retained:
        self._more = False
        failures: list[FoliotError] = []

        async def attempt(part: Awaitable[int]) -> int:
            try:
                return await part
            except FoliotError as failure:
                failures.append(failure)
                return 0

        report = Retained(
            days=await attempt(self._provide_days(now)),
            cancelled=await attempt(self._finish_deletions(now)),
            clocks=await attempt(self._forget(lambda: forget_clocks(self._database, now), CLOCKS)),
            requests=await attempt(
                self._forget(
                    lambda: forget_requests(self._database, now, batch=self._batch), self._batch
                )
            ),
            workers=await attempt(
                self._forget(
                    lambda: forget_workers(self._database, now, batch=self._batch), self._batch
                )
            ),
            deliveries=await attempt(
                self._forget(
                    lambda: forget_deliveries(self._database, now, batch=self._batch), self._batch
                )
            ),
            limits=await attempt(self._forget_limits()),
            starts=await attempt(self._forget_starts(now)),
            more=self._more,
        )
        self.pause_seconds = BUSY_PAUSE_SECONDS if self._more else PAUSE_SECONDS
        if failures:
            raise failures[0]
        return report

    async def _provide_days(self, now: datetime | None) -> int:
        async with self._database.connection() as session:
            return len((await provide_partitions(session, now)).created)

    async def _forget(self, one_batch: Callable[[], Awaitable[int]], full: int) -> int:
        gone = 0
        for _ in range(self._rounds):
            batch = await one_batch()
            gone += batch
            if batch < full:
                return gone
        self._more = True
        return gone

    async def _forget_limits(self) -> int:
        """A part of the walk over all keys; the next pass goes on where this one ends."""
        gone = 0
        for _ in range(self._rounds):
            page = await forget_limits(self._database, self._limits_after, batch=self._batch)
            gone += page.removed
            self._limits_after = page.after
            if page.after is None:
                return gone
        self._more = self._more or gone > 0
        return gone

    async def _forget_starts(self, now: datetime | None) -> int:
        """A part of the walk over all keys with a rate."""
        gone = 0
        for _ in range(self._rounds):
            page = await forget_starts(self._database, self._starts_after, now, batch=self._batch)
            gone += page.removed
            self._starts_after = page.after
            if page.after is None:
                return gone
        self._more = self._more or gone > 0
        return gone

    async def _finish_deletions(self, now: datetime | None) -> int:
        """A part of the walk over all jobs that have something live."""
        cancelled = 0
        for _ in range(self._rounds):
            page = await finish_deletions(self._database, self._deleted_after, now=now)
            cancelled += page.cancelled
            self._deleted_after = page.after
            if page.after is None:
                return cancelled
        self._more = self._more or cancelled > 0
        return cancelled
