"""The jobs that users mean when they write a name or an id."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from foliot.core.errors import JobNotFound
from foliot.core.ids import JobId, TenantId
from foliot.core.model import ConcurrencyLimit, Json
from foliot.store.database import Database
from foliot.store.statements import statement

_RESOLVE: Final = statement("jobs/resolve")


@dataclass(frozen=True, slots=True)
class JobReference:
    """A job that is there. `payload` is read only where a concurrency key is made of it."""

    job_id: JobId
    name: str
    concurrency: ConcurrencyLimit
    payload: Json
    now: datetime
    queue: str
    limited: bool  # it has limits of its own, or its queue or tenant has


async def resolve_jobs(
    database: Database,
    tenant_id: TenantId,
    references: Iterable[str],
    now: datetime | None = None,
) -> Mapping[str, JobReference]:
    """By what was written; `JobNotFound` for the first that means no job of this tenant."""
    wanted = list(dict.fromkeys(references))
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(
            _RESOLVE, tenant_id, [as_uuid(each) for each in wanted], wanted, now
        )
    found: dict[str, JobReference] = {}
    for reference, row in zip(wanted, rows, strict=True):
        if row["job_id"] is None:
            raise JobNotFound(reference)
        found[reference] = JobReference(
            job_id=row["job_id"],
            name=row["name"],
            concurrency=ConcurrencyLimit(**(row["concurrency"] or {})),
            payload=row["payload"],
            now=row["now"],
            queue=row["queue"],
            limited=row["limited"],
        )
    return found


def as_uuid(text: str) -> UUID | None:
    """In its usual form: 36 characters with hyphens, or 32 without."""
    if len(text) not in (32, 36):
        return None
    try:
        return UUID(text)
    except ValueError:
        return None
