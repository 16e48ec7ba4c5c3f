"""Queues, which are the operator's and shared by all tenants: how full they are, what holds them.

A queue is there once a job names it. While it is paused nothing of it is claimed; what runs goes
on. Its limit is how many run at once: claims keep it, so that whose turn it is stays a matter of
rank.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.errors import QueueNotFound
from foliot.store.database import Database
from foliot.store.statements import statement

_LIST_PAGE: Final = statement("queues/list_page")
_COUNT: Final = statement("queues/count")
_PAUSE: Final = statement("queues/pause")
_RESUME: Final = statement("queues/resume")
_PUT_LIMIT: Final = statement("queues/put_limit")

# Nobody waits for the count of more than this.
DEPTH_MAX: Final = 100_000
FLOWS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class StoredQueue:
    """`depth` is how many could be claimed, counted up to DEPTH_MAX."""

    name: str
    paused_at: datetime | None
    status_note: str | None
    concurrency_limit: int | None
    depth: int
    running: int
    oldest_wait_seconds: float | None


async def list_queues(
    database: Database, after: str | None = None, *, limit: int, now: datetime | None = None
) -> list[StoredQueue]:
    """By name, from the first one after `after`."""
    return await _list(database, after, None, limit, now)


async def count_queues(database: Database) -> int:
    return int(await database.fetch_value(_COUNT))


async def read_queue(database: Database, name: str, now: datetime | None = None) -> StoredQueue:
    found = await _list(database, None, name, 1, now)
    if not found:
        raise QueueNotFound(name)
    return found[0]


async def pause_queue(
    database: Database, name: str, note: str | None = None, now: datetime | None = None
) -> StoredQueue:
    """From now on nothing of it is claimed."""
    await read_queue(database, name)
    await database.execute(_PAUSE, name, note, now)
    return await read_queue(database, name, now)


async def resume_queue(
    database: Database, name: str, note: str | None = None, now: datetime | None = None
) -> StoredQueue:
    await read_queue(database, name)
    await database.execute(_RESUME, name, note)
    return await read_queue(database, name, now)


async def limit_queue(
    database: Database, name: str, at_most: int | None, now: datetime | None = None
) -> StoredQueue:
    """A lower limit stops nothing that runs: no more start until there is room again."""
    await read_queue(database, name)
    await database.execute(_PUT_LIMIT, name, at_most)
    return await read_queue(database, name, now)


async def _list(
    database: Database, after: str | None, name: str | None, limit: int, now: datetime | None
) -> list[StoredQueue]:
    rows = await database.fetch(_LIST_PAGE, after, name, limit, DEPTH_MAX, FLOWS_MAX, now)
    return [StoredQueue(**row) for row in rows]
