"""Who takes part: the workers and the schedulers, as people want to see them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.ids import SchedulerId, TenantId, WorkerId
from foliot.core.states import WorkerState
from foliot.store.database import Database
from foliot.store.shards import LEASE_SECONDS
from foliot.store.statements import statement

_LIST_PAGE: Final = statement("workers/list_page")
_COUNT: Final = statement("workers/count")
_LIST_SCHEDULERS: Final = statement("shards/list_schedulers")


@dataclass(frozen=True, slots=True)
class StoredWorker:
    """`current_load` is how many executions name it."""

    worker_id: WorkerId
    tenant_id: TenantId | None
    name: str
    host: str
    status: WorkerState
    capacity: int
    current_load: int
    queues: tuple[str, ...]
    labels: tuple[str, ...]
    region: str | None
    handlers: tuple[str, ...]
    version: str
    registered_at: datetime
    last_heartbeat_at: datetime


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    registered_at: datetime
    worker_id: WorkerId


@dataclass(frozen=True, slots=True)
class StoredScheduler:
    """Without a sign of life for as long as a lease lasts, it holds nothing."""

    scheduler_id: SchedulerId
    host: str
    version: str
    alive: bool
    shards: tuple[int, ...]
    started_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class Schedulers:
    """`lag_seconds`: how long the job that should have fired first has been due."""

    nodes: tuple[StoredScheduler, ...]
    shards_without_owner: int
    lag_seconds: float


async def list_workers(
    database: Database,
    tenant_id: TenantId,
    statuses: Sequence[WorkerState] | None,
    *,
    after: WorkerPlace | None,
    limit: int,
) -> list[StoredWorker]:
    """Those of the tenant and those that serve everyone, the newest first."""
    place = (after.registered_at, after.worker_id) if after else (None, None)
    rows = await database.fetch(_LIST_PAGE, tenant_id, statuses, *place, limit)
    return [
        StoredWorker(
            worker_id=WorkerId(row["id"]),
            status=WorkerState(row["status"]),
            queues=tuple(row["queues"]),
            labels=tuple(row["labels"]),
            handlers=tuple(row["handlers"]),
            **{name: row[name] for name in _SAME},
        )
        for row in rows
    ]


_SAME: Final = (
    "tenant_id",
    "name",
    "host",
    "capacity",
    "current_load",
    "region",
    "version",
    "registered_at",
    "last_heartbeat_at",
)


async def count_workers(
    database: Database, tenant_id: TenantId, statuses: Sequence[WorkerState] | None
) -> int:
    return int(await database.fetch_value(_COUNT, tenant_id, statuses))


async def read_schedulers(database: Database, now: datetime | None = None) -> Schedulers:
    rows = await database.fetch(_LIST_SCHEDULERS, LEASE_SECONDS, now)
    nodes = tuple(
        StoredScheduler(
            SchedulerId(row["id"]),
            row["host"],
            row["version"],
            row["alive"],
            tuple(row["shards"]),
            row["started_at"],
            row["last_seen_at"],
        )
        for row in rows
        if row["id"] is not None
    )
    return Schedulers(nodes, rows[0]["shards_without_owner"], rows[0]["lag_seconds"] or 0.0)
