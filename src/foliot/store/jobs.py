"""Jobs come into being, change and end.

Every change is one transaction that locks the job and, before it touches the schedule, settles the
instants up to now under the version in force: they are fired or skipped, once. What is settled is
never due again, whatever the new schedule says. Reading is in `job_rows`.

A pause leaves the schedule and its version as they are: what a scheduler has staged is still right
if the job goes on in time, and is refused for its instant if it does not.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

from foliot.core.errors import JobAlreadyExists, JobNotFound, VersionConflict
from foliot.core.ids import JobId, TenantId, shard_of
from foliot.core.model import Job, SkipReason
from foliot.core.schedule.calendar import Calendar
from foliot.core.states import JOB, JobEvent, JobState, advance
from foliot.store.admitting import put_limits
from foliot.store.database import Database
from foliot.store.definitions import calendar_from_json
from foliot.store.dependents import (
    check_parents_are_there,
    leave_parents,
    list_children,
    lock_to_delete,
    lock_to_follow,
    put_parents,
)
from foliot.store.errors import DatabaseError, StatementFailed
from foliot.store.job_plans import (
    columns,
    first_plan,
    is_over_without_instants,
    next_plan,
    own_limit,
    same_plan,
)
from foliot.store.job_rows import StoredJob, get, limits_of, read_job
from foliot.store.job_settling import fire_all_due, lock_job, settle_before_change
from foliot.store.lanes import lane_of
from foliot.store.limit_changes import note_changes, note_key_limit
from foliot.store.session import Session
from foliot.store.statements import statement

_CREATE: Final = statement("jobs/create")
_RESERVE_NAME: Final = statement("jobs/reserve_name")
_READ_TIME: Final = statement("jobs/read_time")
_UPDATE: Final = statement("jobs/update")
_PAUSE: Final = statement("jobs/pause")
_RESUME: Final = statement("jobs/resume")
_DELETE: Final = statement("jobs/delete")
_CANCEL_WAITING: Final = statement("jobs/cancel_waiting")
_READ_CALENDAR: Final = statement("calendars/read_calendar")

# What one call cancels stays well within the time that a statement has.
CANCELLED_AT_ONCE: Final = 2000


async def create(
    database: Database, job: Job, *, changed_by: str, now: datetime | None = None
) -> StoredJob:
    """A new job. Creating one whose id is there already changes nothing and returns that one."""
    job = replace(job, created_by=changed_by)
    lane_id = await lane_of(database, job)
    try:
        async with database.transaction() as session:
            await lock_to_follow(session, job)
            moment: datetime = await session.fetch_value(_READ_TIME, now)
            plan = first_plan(job, await _calendar(session, job), moment)
            place = (job.job_id, job.tenant_id, shard_of(job.job_id), plan.alive)
            saved = columns(job, plan, lane_id)
            if await session.execute(_CREATE, *place, *saved, changed_by, moment):
                await _reserve_name(session, job, alive=plan.alive)
                await put_limits(session, limits_of(job))
                if job.schedule.after is not None:
                    await put_parents(session, job)
            return await read_job(session, job.tenant_id, job.job_id, moment)
    except StatementFailed as failure:
        if not _is_name_taken(failure):
            raise
    except JobNotFound:
        pass  # the id is taken by a job that this tenant cannot see
    try:
        # Whoever has the name may be this very job, created by somebody else at the same time.
        return await get(database, job.tenant_id, job.job_id, now)
    except JobNotFound:
        raise JobAlreadyExists(job.name) from None


async def update(
    database: Database,
    job: Job,
    *,
    changed_by: str,
    expected_version: int | None = None,
    now: datetime | None = None,
) -> StoredJob:
    """Make `job` the next version; its status, its versions and who created it are not the
    caller's to set."""
    lane_id = await lane_of(database, job)
    try:
        async with database.transaction() as session:
            await lock_to_follow(session, job)
            # The calendar before the job, in the order of those who change a calendar.
            calendar = await _calendar(session, job)
            stored = await lock_job(session, job.tenant_id, job.job_id, now)
            _check_version(stored, expected_version)
            await _update(session, stored, (job, calendar), lane_id, changed_by)
            return await read_job(session, job.tenant_id, job.job_id, stored.now)
    except StatementFailed as failure:
        if not _is_name_taken(failure):
            raise
        raise JobAlreadyExists(job.name) from None


async def _update(
    session: Session,
    stored: StoredJob,
    wanted: tuple[Job, Calendar | None],
    lane_id: int,
    changed_by: str,
) -> None:
    job, calendar = replace(wanted[0], created_by=stored.job.created_by), wanted[1]
    rescheduled = job.schedule != stored.job.schedule
    # A paused job whose schedule stays is settled when it goes on.
    if rescheduled or stored.job.status is JobState.ACTIVE:
        stored = await settle_before_change(session, stored)
    plan = next_plan(stored, job, calendar) if rescheduled else same_plan(stored)
    place = (job.job_id, stored.now, rescheduled, plan.alive)
    await session.execute(_UPDATE, *place, *columns(job, plan, lane_id), changed_by)
    paused = stored.job.status is JobState.PAUSED
    await _reserve_name(session, job, alive=plan.alive or paused)
    limits = limits_of(job)
    lifted = {own_limit(job)} - {limit.key for limit in limits}
    await note_changes(session, limits, stored.now)
    if job.concurrency.limit != stored.job.concurrency.limit:
        await note_key_limit(session, job.job_id, stored.now)
    await put_limits(session, limits, lifted=lifted)
    if job.schedule.after != stored.job.schedule.after:
        await put_parents(session, job)
        edited = await read_job(session, job.tenant_id, job.job_id, stored.now)
        # With fewer parents to wait for, those that have ended may be all of them.
        if job.schedule.after is not None and edited.job.status is JobState.ACTIVE:
            await fire_all_due(session, edited, SkipReason.MISFIRE)


async def pause(  # noqa: PLR0913 - who, why, seen in which version, and when
    database: Database,
    tenant_id: TenantId,
    job_id: JobId,
    *,
    changed_by: str,
    note: str | None = None,
    expected_version: int | None = None,
    now: datetime | None = None,
) -> StoredJob:
    """Fire nothing from now on. A paused job stays as it is; one that is over cannot be paused."""
    async with database.transaction() as session:
        stored = await lock_job(session, tenant_id, job_id, now)
        _check_version(stored, expected_version)
        if stored.job.status is JobState.PAUSED:
            return stored
        stored = await settle_before_change(session, stored)
        advance(JOB, stored.job.status, JobEvent.PAUSE)
        await session.execute(_PAUSE, job_id, changed_by, note, stored.now)
        return await read_job(session, tenant_id, job_id, stored.now)


async def resume(  # noqa: PLR0913 - who, why, seen in which version, and when
    database: Database,
    tenant_id: TenantId,
    job_id: JobId,
    *,
    changed_by: str,
    note: str | None = None,
    expected_version: int | None = None,
    now: datetime | None = None,
) -> StoredJob:
    """Fire again. What was due meanwhile fires by the misfire policy, or is skipped as PAUSED."""
    async with database.transaction() as session:
        stored = await lock_job(session, tenant_id, job_id, now)
        _check_version(stored, expected_version)
        if stored.job.status is JobState.ACTIVE:
            return stored
        advance(JOB, stored.job.status, JobEvent.RESUME)
        await check_parents_are_there(session, stored.job)
        ends = is_over_without_instants(stored.job.schedule)
        await session.execute(_RESUME, job_id, changed_by, note, stored.now, ends)
        resumed = await read_job(session, tenant_id, job_id, stored.now)
        return await fire_all_due(session, resumed, SkipReason.PAUSED)


async def delete(  # noqa: PLR0913 - who, why, seen in which version, and when
    database: Database,
    tenant_id: TenantId,
    job_id: JobId,
    *,
    changed_by: str,
    note: str | None = None,
    expected_version: int | None = None,
    now: datetime | None = None,
) -> int:
    """End a job and cancel what waits of it: how many. What runs may finish, and the jobs that
    follow it are paused."""
    async with database.transaction() as session:
        await lock_to_delete(session, tenant_id, job_id)
        stored = await lock_job(session, tenant_id, job_id, now)
        _check_version(stored, expected_version)
        stored = await settle_before_change(session, stored)
        await session.execute(_DELETE, job_id, changed_by, note, stored.now)
        await put_limits(session, lifted=[own_limit(stored.job)])
        await _let_go(session, stored, changed_by)
        page = await session.fetch_value(_CANCEL_WAITING, job_id, CANCELLED_AT_ONCE, stored.now)
    cancelled = int(page)
    # It is deleted, whatever becomes of this: what is left of it the schedulers cancel.
    with suppress(DatabaseError):
        while page == CANCELLED_AT_ONCE:
            page = await database.fetch_value(
                _CANCEL_WAITING, job_id, CANCELLED_AT_ONCE, stored.now
            )
            cancelled += page
    return cancelled


async def _let_go(session: Session, stored: StoredJob, changed_by: str) -> None:
    """A deleted job follows nobody, and who follows it would wait for ever."""
    if stored.job.schedule.after is not None:
        await leave_parents(session, stored.job)
    note = f"{stored.job.name!r}, which it follows, was deleted"
    for child_id in await list_children(session, stored.job.job_id):
        child = await lock_job(session, stored.job.tenant_id, child_id, stored.now)
        if child.job.status is JobState.ACTIVE:
            await settle_before_change(session, child)
            await session.execute(_PAUSE, child_id, changed_by, note, stored.now)


def _check_version(stored: StoredJob, expected: int | None) -> None:
    """Whoever changes a job may say which version they have seen of it."""
    if expected is not None and expected != stored.job.version:
        raise VersionConflict(stored.job.job_id, expected, stored.job.version)


async def _reserve_name(session: Session, job: Job, *, alive: bool) -> None:
    """Names are unique among jobs that are not over; an old one keeps its own until wanted."""
    if alive:
        await session.execute(_RESERVE_NAME, job.tenant_id, job.name, job.job_id)


async def _calendar(session: Session, job: Job) -> Calendar | None:
    """The calendar that the schedule names; a schedule without it is refused by its rules."""
    if job.schedule.calendar is None:
        return None
    written = await session.fetch_value(_READ_CALENDAR, job.tenant_id, job.schedule.calendar)
    return None if written is None else calendar_from_json(written)


def _is_name_taken(failure: StatementFailed) -> bool:
    return failure.constraint == "job_names_pkey"
