"""What the benchmarks ask of a store: the same words for ours and for the bare baseline.

A contender only says which statement to send with which arguments. Sending, timing, processes and
connections are the same code for both, so that a difference between them is the store's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import asyncpg

DAY: Final = timedelta(days=1)
LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)
RESULT: Final = '{"ok": true}'


class Due(NamedTuple):
    """A job and its instant that has come."""

    job_id: UUID
    instant: datetime


class Claimed(NamedTuple):
    """An execution in a worker's hands."""

    id: UUID
    fence: int
    rank: float


@dataclass(frozen=True, slots=True)
class Call:
    """One statement with its arguments: one round trip."""

    sql: str
    arguments: tuple[object, ...]

    async def fetch(self, db: asyncpg.Connection) -> list[asyncpg.Record]:
        return await db.fetch(self.sql, *self.arguments)


class Contender(Protocol):
    """A store that can be measured. `due` comes sorted by job."""

    name: str

    async def install(self, url: str) -> None:
        """The tables and functions, in an empty database."""

    async def add_jobs(self, db: asyncpg.Connection, count: int) -> None:
        """Jobs that are due by now, each at an instant of its own."""

    async def add_worker(self, db: asyncpg.Connection, worker_id: UUID) -> None: ...

    async def fill_queue(self, db: asyncpg.Connection) -> None:
        """One claimable execution for each job."""

    async def count(self, db: asyncpg.Connection) -> tuple[int, int]:
        """Live rows, rows of history."""

    def tables(self) -> tuple[str, ...]:
        """Those to vacuum before a measurement."""

    def read_due(self, low: datetime, limit: int) -> Call: ...

    def fire(self, due: Sequence[Due]) -> Call: ...

    def skip(self, due: Sequence[Due]) -> Call:
        """Advance the jobs and record that these instants do not run."""

    def claim(self, worker_id: UUID, bite: int, floor: float) -> Call: ...

    def finish(self, worker_id: UUID, claimed: Sequence[Claimed]) -> Call: ...

    def enqueue(self, jobs: Sequence[UUID], requests: Sequence[UUID]) -> Call:
        """Executions that somebody asked for."""

    def park(self) -> Call:
        """Make every waiting row one whose time comes now, for `release` to find."""

    def release(self, limit: int) -> Call:
        """Rows whose time has come become claimable."""
