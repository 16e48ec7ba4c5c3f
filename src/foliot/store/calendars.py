"""Calendars, and the jobs that keep to them.

A new definition holds from now on. In one transaction the jobs that use the calendar are locked,
the instants up to now are settled under the old definition, the new one is written, and the jobs
are planned anew by it. Whoever saves a job that names the calendar waits for that, or is waited
for.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from foliot.core.ids import JobId, TenantId
from foliot.core.schedule.calendar import Calendar, validate
from foliot.core.storable import check_storable
from foliot.store.database import Database
from foliot.store.definitions import calendar_as_json, calendar_from_json
from foliot.store.job_plans import calendar_plan
from foliot.store.job_rows import StoredJob, read_jobs
from foliot.store.job_settling import settle_all_before_change
from foliot.store.session import Session
from foliot.store.statements import statement

_FIND: Final = statement("calendars/find")
_LOCK_CALENDAR: Final = statement("calendars/lock_calendar")
_WRITE_CALENDAR: Final = statement("calendars/write_calendar")
_LIST_JOBS: Final = statement("calendars/list_jobs")
_LOCK_JOBS: Final = statement("calendars/lock_jobs")
_REPLAN_JOBS: Final = statement("calendars/replan_jobs")

PAGE_JOBS: Final = 500
BYTES_MAX: Final = 262_144
_FIRST: Final = UUID(int=0)


async def find_calendar(database: Database, tenant_id: TenantId, name: str) -> Calendar | None:
    async with database.transaction(tenant_id) as session:
        written = await session.fetch_value(_FIND, tenant_id, name)
    return None if written is None else calendar_from_json(written)


async def put_calendar(
    database: Database,
    tenant_id: TenantId,
    calendar: Calendar,
    *,
    changed_by: str,
    now: datetime | None = None,
) -> int:
    """Make or change a calendar; its version. The same definition again leaves the jobs alone."""
    validate(calendar)
    definition = calendar_as_json(calendar)
    text = check_storable(definition, "calendar", BYTES_MAX)
    async with database.transaction() as session:
        old = await session.fetch_value(_LOCK_CALENDAR, tenant_id, calendar.name)
        jobs: list[StoredJob] = []
        if old is not None and old != definition:
            # All locks come before the first fire: nobody waits for a job while holding executions.
            locked = [job async for job in _lock_jobs(session, tenant_id, calendar.name)]
            jobs = await _settle(session, tenant_id, locked, calendar.name, now)
        moment = jobs[0].now if jobs else now
        version: int = await session.fetch_value(
            _WRITE_CALENDAR, tenant_id, calendar.name, text, moment
        )
        for start in range(0, len(jobs), PAGE_JOBS):
            await _replan(session, jobs[start : start + PAGE_JOBS], calendar, changed_by)
    return version


async def _lock_jobs(session: Session, tenant_id: TenantId, name: str) -> AsyncIterator[JobId]:
    """In the order of their ids, as everybody locks several jobs."""
    page, last = [_FIRST], _FIRST
    while page:
        rows = await session.fetch(_LIST_JOBS, tenant_id, name, last, PAGE_JOBS)
        page = [row["job_id"] for row in rows]
        last = page[-1] if page else last
        for row in await session.fetch(_LOCK_JOBS, page):
            yield JobId(row["id"])


async def _settle(
    session: Session,
    tenant_id: TenantId,
    locked: Sequence[JobId],
    name: str,
    now: datetime | None,
) -> list[StoredJob]:
    """Those that still use the calendar, settled up to one moment, which is after all locks."""
    settled: list[StoredJob] = []
    for start in range(0, len(locked), PAGE_JOBS):
        page = await read_jobs(session, tenant_id, locked[start : start + PAGE_JOBS], now)
        now = page[0].now if page else now
        users = [stored for stored in page if stored.job.schedule.calendar == name]
        settled += await settle_all_before_change(session, users)
    return settled


async def _replan(
    session: Session, jobs: Sequence[StoredJob], calendar: Calendar, changed_by: str
) -> None:
    plans = [calendar_plan(stored, calendar) for stored in jobs]
    await session.execute(
        _REPLAN_JOBS,
        [stored.job.job_id for stored in jobs],
        [plan.next_instant for plan in plans],
        [plan.next_run_at for plan in plans],
        [plan.alive for plan in plans],
        changed_by,
        f"calendar {calendar.name} changed",
        jobs[0].now,
    )
