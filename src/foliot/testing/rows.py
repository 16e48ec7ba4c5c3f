"""Rows for tests, put straight into the tables: what an operation finds, without its neighbours.

Each builder has sensible defaults for every column and takes any column by its name. Times are
told, never asked: `NOW` is when a job that was made here is due.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import count
from typing import Any, Final
from uuid import UUID

from foliot.core.ids import ExecutionId, JobId, TenantId, WorkerId, scheduled_execution, shard_of
from foliot.core.model import Schedule, ScheduleType
from foliot.store.database import Database
from foliot.store.definitions import schedule_as_json
from foliot.testing.database import sql

NOW: Final = datetime(2027, 3, 1, 12, tzinfo=UTC)
DEFAULT_TENANT: Final = TenantId(UUID("00000000-0000-8000-8000-000000000001"))
HOURLY: Final = Schedule(ScheduleType.INTERVAL, interval_seconds=3600)
_numbers: Final = count(1)


@dataclass(frozen=True, slots=True)
class JobRow:
    """What other rows and calls need to know of a job."""

    job_id: JobId
    tenant_id: TenantId
    queue: str
    lane_id: int
    priority: int
    version: int
    schedule_version: int
    name: str
    next_instant: datetime | None


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """What calls need to know of an execution."""

    execution_id: ExecutionId
    job_id: JobId
    tenant_id: TenantId
    queue: str
    lane_id: int
    status: str
    rank: float | None
    fence: int
    worker_id: WorkerId | None
    scheduled_time: datetime


def fresh_id() -> UUID:
    """An id that no other row of these tests has; scattered, and the same in every run."""
    return UUID(bytes=blake2b(b"%d" % next(_numbers), digest_size=16).digest(), version=4)


async def insert_rows(database: Database, table: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Rows of one shape, by column name; what is not named takes the table's default."""
    names = ", ".join(rows[0])
    insert = sql(
        f"insert into foliot.{table} ({names})"  # noqa: S608 - names come from the test itself
        f" select {names} from jsonb_populate_recordset(null::foliot.{table}, $1::text::jsonb)"
    )
    await database.execute(insert, json.dumps([dict(row) for row in rows], default=str))


async def make_tenant(database: Database, **changes: object) -> TenantId:
    row = {
        "id": fresh_id(),
        "name": f"tenant-{next(_numbers)}",
        "tier": "free",
        "weight": 1.0,
        "created_at": NOW,
    } | changes
    await insert_rows(database, "tenants", [row])
    return TenantId(UUID(str(row["id"])))


async def make_lane(
    database: Database,
    queue: str = "default",
    *,
    region: str | None = None,
    requires: Sequence[str] = (),
    target_type: str = "HANDLER",
    handler: str | None = "work",
) -> int:
    """The number of the lane, made if it is not there."""
    columns = (queue, region, list(requires), target_type, handler)
    await database.execute(
        sql(
            "insert into foliot.lanes (queue, region, requires, target_type, handler)"
            " values ($1, $2, $3, $4, $5) on conflict do nothing"
        ),
        *columns,
    )
    found = await database.fetch_value(
        sql(
            "select id from foliot.lanes where queue = $1 and region is not distinct from $2"
            " and requires = $3 and target_type = $4 and handler is not distinct from $5"
        ),
        *columns,
    )
    return int(found)


async def make_worker(database: Database, **changes: object) -> WorkerId:
    row = {
        "id": fresh_id(),
        "name": f"worker-{next(_numbers)}",
        "host": "testhost",
        "version": "0",
        "status": "ACTIVE",
        "queues": ["default"],
        "handlers": ["work"],
        "capacity": 100,
        "registered_at": NOW,
        "last_heartbeat_at": NOW,
    } | changes
    await insert_rows(database, "workers", [row])
    return WorkerId(UUID(str(row["id"])))


async def make_job(
    database: Database,
    schedule: Schedule = HOURLY,
    *,
    payload: object = None,
    **changes: Any,  # noqa: ANN401 - a value for any column
) -> JobRow:
    """An ACTIVE job with its first version, due at `NOW` unless told otherwise."""
    row = await _job_columns(database, schedule, changes)
    await insert_rows(database, "jobs", [row])
    version = {name: row[name] for name in ("tenant_id", "version", "schedule_version", "status")}
    await insert_rows(
        database,
        "job_versions",
        [
            version
            | {
                "job_id": row["id"],
                "definition": {
                    "name": row["name"],
                    "queue": row["queue"],
                    "priority": row["priority"],
                    "schedule": schedule_as_json(schedule),
                    "target": {"type": "HANDLER", "name": "work"},
                },
                "payload": payload,
                "changed_by": "test",
                "valid_from": row["created_at"],
            }
        ],
    )
    return JobRow(
        job_id=row["id"],
        **{name: row[name] for name in JobRow.__slots__ if name != "job_id"},
    )


async def _job_columns(
    database: Database, schedule: Schedule, changes: Mapping[str, Any]
) -> dict[str, Any]:
    job_id = JobId(changes.get("id", fresh_id()))
    due = changes.get("next_instant", NOW)
    row = {
        "id": job_id,
        "tenant_id": DEFAULT_TENANT,
        "shard": shard_of(job_id),
        "status": "ACTIVE",
        "version": 1,
        "schedule_version": 1,
        "next_instant": due,
        "next_run_at": due,
        "last_instant": None,
        "fired_count": 0,
        "queue": "default",
        "priority": 5,
        "overlap_policy": str(schedule.overlap_policy),
        "name": f"job-{next(_numbers)}",
        "created_at": NOW - timedelta(hours=1),
        "updated_at": NOW - timedelta(hours=1),
    } | dict(changes)
    if "lane_id" not in row:
        row["lane_id"] = await make_lane(database, row["queue"])
    return row


async def make_execution(
    database: Database,
    job: JobRow | None = None,
    **changes: Any,  # noqa: ANN401 - a value for any column
) -> ExecutionRow:
    """A QUEUED execution with rank 1, or one in any other state that `changes` names."""
    job = job or await make_job(database)
    (made,) = await make_executions(database, job, 1, **changes)
    return made


async def make_executions(
    database: Database,
    job: JobRow,
    number: int,
    **changes: Any,  # noqa: ANN401 - a value for any column
) -> list[ExecutionRow]:
    """Many alike, a microsecond apart from `scheduled_time` on, or else before `NOW`; ranks rise by
    one unless told otherwise."""
    instants = [
        changes["scheduled_time"] + timedelta(microseconds=position)
        if "scheduled_time" in changes
        else NOW - timedelta(hours=1) + timedelta(microseconds=next(_numbers))
        for position in range(number)
    ]
    rows = [
        _execution_columns(job, instant, changes | {"rank": changes.get("rank", 1.0 + position)})
        for position, instant in enumerate(instants)
    ]
    if rows and rows[0]["status"] == "RUNNING" and rows[0].get("worker_id") is None:
        worker = await make_worker(database)
        rows = [row | {"worker_id": worker} for row in rows]
    await insert_rows(database, "executions", rows)
    return [
        ExecutionRow(
            execution_id=ExecutionId(row["id"]),
            **{name: row[name] for name in ExecutionRow.__slots__ if name != "execution_id"},
        )
        for row in rows
    ]


def _execution_columns(
    job: JobRow, instant: datetime, changes: Mapping[str, Any]
) -> dict[str, Any]:
    status = changes.get("status", "QUEUED")
    ranked, tried = status in ("QUEUED", "RUNNING"), status in ("RUNNING", "RETRYING")
    row: dict[str, Any] = {
        "id": scheduled_execution(job.job_id, instant),
        "tenant_id": job.tenant_id,
        "job_id": job.job_id,
        "job_version": job.version,
        "status": status,
        "trigger": "SCHEDULE",
        "queue": job.queue,
        "lane_id": job.lane_id,
        "priority": job.priority,
        "available_at": instant,
        "queued_at": instant if ranked else None,
        "attempt_number": 1 if tried else 0,
        "fence": 1 if tried else 0,
        "worker_id": None,
        "claimed_at": instant if status == "RUNNING" else None,
        "hold": "OVERLAP" if status == "WAITING" else None,
        "job_name": job.name,
        "created_at": instant,
    }
    row.update(changes)
    return row | {"scheduled_time": instant, "rank": changes["rank"] if ranked else None}
