"""Jobs in lists: filtered, in one of three orders, page by page from where the last page ended.

A position is the value a list is ordered by and the job's id, so that jobs that come and go between
two pages neither hide nor repeat others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from foliot.core.errors import JobNotFound
from foliot.core.ids import ExecutionId, JobId, TenantId
from foliot.core.states import ExecutionState, JobState
from foliot.store.database import Database
from foliot.store.job_rows import JobVersion, StoredJob, job_from, stored_job
from foliot.store.statements import Statement, statement

_COUNT: Final = statement("jobs/count")
_LIST_VERSIONS: Final = statement("jobs/list_versions")
_COUNT_VERSIONS: Final = statement("jobs/count_versions")
_READ_RECENT: Final = statement("jobs/read_recent")
_WAS_MADE: Final = statement("jobs/was_made")


class JobOrder(StrEnum):
    CREATED_AT = "created_at"  # the newest first
    NAME = "name"
    NEXT_RUN_AT = "next_run_at"  # the soonest first, those that never run last


_LISTS: Final[Mapping[JobOrder, Statement]] = {
    JobOrder.CREATED_AT: statement("jobs/list_newest"),
    JobOrder.NAME: statement("jobs/list_by_name"),
    JobOrder.NEXT_RUN_AT: statement("jobs/list_soonest"),
}


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What is not None must hold; a job has all of `tags` and `labels`."""

    statuses: Sequence[JobState] | None = None
    last_status: ExecutionState | None = None
    tags: Sequence[str] | None = None
    labels: Mapping[str, str] | None = None
    name_prefix: str | None = None
    queue: str | None = None
    target_type: str | None = None
    schedule_type: str | None = None
    created_by: str | None = None
    search: str | None = None

    def columns(self) -> tuple[object, ...]:
        """In the order of the statements."""
        return (
            self.statuses,
            self.last_status,
            self.tags,
            self.labels,
            self.name_prefix,
            self.queue,
            self.target_type,
            self.schedule_type,
            self.created_by,
            self.search,
        )


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where a page ended: a time or a name, as the order has it, and the id."""

    value: datetime | str | None
    job_id: JobId


@dataclass(frozen=True, slots=True)
class JobPage:
    order: JobOrder = JobOrder.CREATED_AT
    after: JobPlace | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class RecentEnd:
    """A finished execution of a job, and when the last attempt at it began."""

    execution_id: ExecutionId
    status: ExecutionState
    scheduled_time: datetime
    started_at: datetime | None
    finished_at: datetime


async def list_jobs(
    database: Database,
    tenant_id: TenantId,
    wanted: JobFilter,
    page: JobPage,
    now: datetime | None = None,
) -> list[StoredJob]:
    place = (page.after.value, page.after.job_id) if page.after else (None, None)
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(
            _LISTS[page.order], tenant_id, *wanted.columns(), *place, page.limit, now
        )
    return [stored_job(row) for row in rows]


async def count_jobs(database: Database, tenant_id: TenantId, wanted: JobFilter) -> int:
    async with database.transaction(tenant_id) as session:
        return int(await session.fetch_value(_COUNT, tenant_id, *wanted.columns()))


def place_of(stored: StoredJob, order: JobOrder) -> JobPlace:
    """Where a page ends that ends with this job."""
    match order:
        case JobOrder.CREATED_AT:
            return JobPlace(stored.created_at, stored.job.job_id)
        case JobOrder.NAME:
            return JobPlace(stored.job.name, stored.job.job_id)
        case JobOrder.NEXT_RUN_AT:
            return JobPlace(stored.next_run_at, stored.job.job_id)


async def read_recent_ends(
    database: Database, tenant_id: TenantId, job_ids: Sequence[JobId], count: int
) -> dict[JobId, list[RecentEnd]]:
    """For each of the jobs its last `count` finished executions, the newest first."""
    found: dict[JobId, list[RecentEnd]] = {job_id: [] for job_id in job_ids}
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(_READ_RECENT, tenant_id, list(job_ids), count)
    for row in rows:
        end = RecentEnd(
            ExecutionId(row["id"]),
            ExecutionState(row["status"]),
            row["scheduled_time"],
            row["started_at"],
            row["finished_at"],
        )
        found[JobId(row["job_id"])].append(end)
    return found


async def page_versions(
    database: Database,
    tenant_id: TenantId,
    job_id: JobId,
    *,
    before: int | None,
    limit: int,
) -> list[JobVersion]:
    """The versions below `before`, newest first; `JobNotFound` if there never was such a job."""
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(_LIST_VERSIONS, job_id, tenant_id, before, limit)
    if not rows and before is None:
        raise JobNotFound(job_id)
    return [
        JobVersion(job_from(row), row["valid_from"], row["changed_by"], row["note"]) for row in rows
    ]


async def count_versions(database: Database, tenant_id: TenantId, job_id: JobId) -> int:
    async with database.transaction(tenant_id) as session:
        return int(await session.fetch_value(_COUNT_VERSIONS, job_id, tenant_id))


async def check_was_made(database: Database, tenant_id: TenantId, job_id: JobId) -> None:
    """`JobNotFound` unless the tenant has or had this job."""
    async with database.transaction(tenant_id) as session:
        if not await session.fetch_value(_WAS_MADE, job_id, tenant_id):
            raise JobNotFound(job_id)
