"""Jobs as they are stored: from rows to the model, and from the model to what rows keep."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

import asyncpg

from foliot.core.concurrency_keys import resolve_key
from foliot.core.errors import JobNotFound, UnresolvedKey
from foliot.core.ids import JobId, TenantId
from foliot.core.limits import Limit, job_limit, job_rate, key_limit
from foliot.core.model import (
    ConcurrencyLimit,
    DeadLetterPolicy,
    Job,
    Json,
    ManagedBy,
    RateLimit,
    ScheduleType,
)
from foliot.core.states import JobState
from foliot.store.database import Database
from foliot.store.definitions import (
    as_json,
    retry_policy_from_json,
    schedule_from_json,
    target_as_json,
    target_from_json,
)
from foliot.store.session import Session
from foliot.store.staging import DueJob, due_job
from foliot.store.statements import statement

_READ: Final = statement("jobs/read")
_READ_MANY: Final = statement("jobs/read_many")
_READ_VERSIONS: Final = statement("jobs/read_versions")

# Columns of the row and the payload; the rest of a job is its definition.
_APART: Final = frozenset(
    {"job_id", "tenant_id", "status", "version", "schedule_version", "payload"}
)


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job and where it stands. `due` is None while it has no instant before it."""

    job: Job
    next_instant: datetime | None
    next_run_at: datetime | None
    last_instant: datetime | None
    fired_count: int
    status_note: str | None
    created_at: datetime
    updated_at: datetime
    counted_from: datetime
    now: datetime
    due: DueJob | None


@dataclass(frozen=True, slots=True)
class JobVersion:
    """What a job was from `valid_from` until the next version."""

    job: Job
    valid_from: datetime
    changed_by: str
    note: str | None


async def get(
    database: Database, tenant_id: TenantId, job_id: JobId, now: datetime | None = None
) -> StoredJob:
    """A job that is not deleted; `JobNotFound` also if it is another tenant's."""
    async with database.transaction(tenant_id) as session:
        return await read_job(session, tenant_id, job_id, now)


async def read_job(
    session: Session, tenant_id: TenantId, job_id: JobId, now: datetime | None
) -> StoredJob:
    row = await session.fetch_row(_READ, job_id, tenant_id, now)
    if row is None:
        raise JobNotFound(job_id)
    return stored_job(row)


async def read_jobs(
    session: Session, tenant_id: TenantId, job_ids: Sequence[JobId], now: datetime | None
) -> list[StoredJob]:
    """Those of them that are there."""
    rows = await session.fetch(_READ_MANY, job_ids, tenant_id, now)
    return [stored_job(row) for row in rows]


async def list_versions(database: Database, tenant_id: TenantId, job_id: JobId) -> list[JobVersion]:
    """Oldest first, also of a job that is deleted; `JobNotFound` if it never was."""
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(_READ_VERSIONS, job_id, tenant_id)
    if not rows:
        raise JobNotFound(job_id)
    return [
        JobVersion(job_from(row), row["valid_from"], row["changed_by"], row["note"]) for row in rows
    ]


def stored_job(row: asyncpg.Record) -> StoredJob:
    same = {one.name: row[one.name] for one in fields(StoredJob) if one.name not in ("job", "due")}
    due = None if row["next_instant"] is None else due_job(row)
    return StoredJob(job=job_from(row), due=due, **same)


def job_from(row: asyncpg.Record) -> Job:
    """The job of a row that has its definition and payload."""
    written = row["definition"]
    plain = {name: value for name, value in written.items() if name in _PLAIN}
    return Job(
        job_id=row["job_id"],
        tenant_id=row["tenant_id"],
        status=JobState(row["status"]),
        version=row["version"],
        schedule_version=row["schedule_version"],
        payload=row["payload"],
        schedule=schedule_from_json(written["schedule"]),
        target=target_from_json(written["target"]),
        retry_policy=retry_policy_from_json(written.get("retry_policy", {})),
        requires=frozenset(written.get("requires", ())),
        tags=tuple(written.get("tags", ())),
        concurrency=ConcurrencyLimit(**written.get("concurrency", {})),
        rate_limit=RateLimit(**written.get("rate_limit", {})),
        dead_letter=DeadLetterPolicy(**written.get("dead_letter", {})),
        managed_by=ManagedBy(written.get("managed_by", ManagedBy.API)),
        **plain,
    )


_PLAIN: Final = frozenset(
    {
        "name",
        "description",
        "created_by",
        "timeout_seconds",
        "cancel_grace_seconds",
        "start_deadline_seconds",
        "priority",
        "queue",
        "region",
        "callback_url",
        "labels",
    }
)


def definition_of(job: Job, counted_from: datetime) -> dict[str, Json]:
    """What a version keeps. `counted_from` is when delays and intervals began."""
    written: dict[str, Any] = {
        one.name: as_json(getattr(job, one.name)) for one in fields(job) if one.name not in _APART
    }
    return written | {
        "target": target_as_json(job.target),
        "counted_from": counted_from.isoformat(),
    }


def limits_of(job: Job) -> tuple[Limit, ...]:
    """The limits that its scheduled executions are under: how many at once, and how often."""
    rate = job_rate(job.tenant_id, job.job_id, job.name, job.rate_limit)
    return _concurrency_of(job) if rate is None else (*_concurrency_of(job), rate)


def _concurrency_of(job: Job) -> tuple[Limit, ...]:
    """A job that is only ever triggered may have a key that each trigger's own payload fills."""
    wanted = job.concurrency
    if wanted.limit is None:
        return ()
    if wanted.key is None:
        return (job_limit(job.tenant_id, job.job_id, job.name, wanted.limit),)
    try:
        key = resolve_key(wanted.key, job.payload)
    except UnresolvedKey:
        if job.schedule.type is ScheduleType.MANUAL:
            return ()
        raise
    return (key_limit(job.tenant_id, key, wanted.limit),)
