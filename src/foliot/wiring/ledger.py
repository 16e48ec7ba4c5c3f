"""The check of the ledger for the command line: straight on the database, all jobs to the end."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from foliot.core.errors import InvalidInput, JobNotFound
from foliot.core.ids import JobId, TenantId
from foliot.core.schedule.ledger import Report
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.job_references import as_uuid, resolve_jobs
from foliot.store.ledger import Scope, check_page, open_scope
from foliot.store.tenants import DEFAULT_TENANT, is_tenant

PROBLEMS_NAMED: Final = 1000
OPTIONS: Final = ConnectionOptions(
    prepare=False, max_connections=1, application_name="foliot ledger"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user wrote. A name without a tenant is one of the default tenant's."""

    job: str | None = None
    tenant: str | None = None
    from_: str | None = None
    to: str | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    scope: Scope
    report: Report


async def verify_ledger(url: str, asked: Asked) -> Verified:
    from_, to = _time(asked.from_, "--from"), _time(asked.to, "--to")
    async with Database(url, OPTIONS) as database:
        tenant_id = await _tenant(database, asked.tenant) if asked.tenant else None
        job_id = await _job(database, asked.job, tenant_id) if asked.job else None
        scope = await open_scope(database, tenant_id=tenant_id, job_id=job_id, from_=from_, to=to)
        report, last = Report(PROBLEMS_NAMED), None
        while True:
            page = await check_page(database, scope, after=last)
            for ledger in page.ledgers:
                report.add(ledger)
            last = page.last
            if last is None:
                break
        if asked.job and not report.jobs:
            raise _no_job(asked.job)
    return Verified(scope, report)


async def _tenant(database: Database, written: str) -> TenantId:
    found = as_uuid(written)
    if found is None or not await is_tenant(database, TenantId(found)):
        raise InvalidInput(f"there is no tenant {written}", field="--tenant", hint="give its id")
    return TenantId(found)


async def _job(database: Database, written: str, tenant_id: TenantId | None) -> JobId:
    """An id may be that of a deleted job, of any tenant."""
    found = as_uuid(written)
    if found is not None:
        return JobId(found)
    try:
        jobs = await resolve_jobs(database, tenant_id or DEFAULT_TENANT, [written])
    except JobNotFound:
        raise _no_job(written) from None
    return jobs[written].job_id


def _no_job(written: str) -> InvalidInput:
    hint = "give a name or an id; by name only a job that is not deleted"
    return InvalidInput(f"there is no job {written}", field="--job", hint=hint)


def _time(written: str | None, field: str) -> datetime | None:
    """Without an offset it is UTC."""
    if written is None:
        return None
    try:
        told = datetime.fromisoformat(written)
        return told.replace(tzinfo=UTC) if told.tzinfo is None else told.astimezone(UTC)
    except (ValueError, OverflowError):
        hint = "write it like 2027-01-31T09:00:00Z"
        raise InvalidInput(f"{written!r} is not a time", field=field, hint=hint) from None
