"""Settling a job before it changes: under its lock, in the transaction of the change.

The instants up to now belong to the version in force. An active job fires or skips them as its
policies say; a paused one must not run, so what it has missed is skipped as PAUSED. What fires is
parked for the release: until the commit, however far away its client is, no flow is locked.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from foliot.core.errors import JobNotFound
from foliot.core.ids import JobId, TenantId
from foliot.core.model import SkipReason
from foliot.core.states import JobState
from foliot.store.completions import settle_child
from foliot.store.errors import TransactionConflict
from foliot.store.firing import ROWS_AT_ONCE, JobFire, fire_in
from foliot.store.job_rows import StoredJob, read_job, read_jobs
from foliot.store.session import Session
from foliot.store.staging import settle_due
from foliot.store.statements import statement

_LOCK: Final = statement("jobs/lock")
_SKIP_PAUSED: Final = statement("jobs/skip_paused")

# An instant is never this early: with such a grace every due one is too late to run.
_NOTHING_RUNS_SECONDS: Final = -1.0


async def lock_job(
    session: Session, tenant_id: TenantId, job_id: JobId, now: datetime | None
) -> StoredJob:
    """The job as it is once nobody else can fire or change it; the time is that of the lock."""
    if await session.fetch_row(_LOCK, job_id, tenant_id) is None:
        raise JobNotFound(job_id)
    return await read_job(session, tenant_id, job_id, now)


async def settle_before_change(session: Session, stored: StoredJob) -> StoredJob:
    """Fire or skip what is due by now; the job as it is then."""
    if stored.job.status is JobState.PAUSED:
        return await _skip_paused(session, stored)
    return await fire_all_due(session, stored, SkipReason.MISFIRE)


async def settle_all_before_change(session: Session, jobs: Sequence[StoredJob]) -> list[StoredJob]:
    """The same for many jobs of one tenant, locked in the order of their ids, with few questions:
    those that are active fire together, round by round, as many as one call can take."""
    settled = {stored.job.job_id: stored for stored in jobs}
    together = [stored for stored in jobs if _fires_by_instants(stored)]
    for stored in jobs:
        if not _fires_by_instants(stored):
            settled[stored.job.job_id] = await settle_before_change(session, stored)
    while together:
        one, (fires, rest) = together[0], _due_of(together)
        fired: list[StoredJob] = []
        if fires:
            await _fire(session, fires, one.now)
            ids = [fire.job_id for fire in fires]
            fired = await read_jobs(session, one.job.tenant_id, ids, one.now)
        settled |= {stored.job.job_id: stored for stored in fired}
        together = [*fired, *rest]
    return list(settled.values())


def _due_of(jobs: Sequence[StoredJob]) -> tuple[list[JobFire], Sequence[StoredJob]]:
    """What is due, up to what one call can take, and the jobs that nobody has looked at by then."""
    fires: list[JobFire] = []
    rows = 0
    for place, stored in enumerate(jobs):
        if rows >= ROWS_AT_ONCE:
            return fires, jobs[place:]
        if stored.due is not None and (fire := settle_due(stored.due, stored.now)):
            fires.append(fire)
            rows += fire.rows
    return fires, ()


def _fires_by_instants(stored: StoredJob) -> bool:
    return stored.job.status is not JobState.PAUSED and stored.job.schedule.after is None


async def _fire(session: Session, fires: Sequence[JobFire], now: datetime) -> None:
    report = await fire_in(session, fires, take=False, now=now, park=True)
    if report.passed_over:
        raise TransactionConflict("the job changed under its lock", "40001", "jobs/fire_due")


async def fire_all_due(session: Session, stored: StoredJob, cause: SkipReason) -> StoredJob:
    """The misfire policy decides what fires; the rest is skipped for `cause`.

    One round as a rule. Another follows where over a thousand fire, or where a job has few runs
    left and one of them overlapped, which does not count: then the instants after it are due as
    well. A job that follows others has no instants but their ends.
    """
    if stored.job.schedule.after is not None:
        await settle_child(session, stored.job.job_id, stored.now, cause)
        return await _read_again(session, stored)
    while stored.due is not None and (fire := settle_due(stored.due, stored.now, cause)):
        await _fire(session, [fire], stored.now)
        stored = await _read_again(session, stored)
    return stored


async def _skip_paused(session: Session, stored: StoredJob) -> StoredJob:
    if stored.job.schedule.after is not None:
        paused = SkipReason.PAUSED
        await settle_child(session, stored.job.job_id, stored.now, paused, runs=False)
        return await _read_again(session, stored)
    if stored.due is None:
        return stored
    schedule = replace(stored.due.schedule, misfire_grace_seconds=_NOTHING_RUNS_SECONDS)
    missed = settle_due(replace(stored.due, schedule=schedule), stored.now, SkipReason.PAUSED)
    if missed is None:
        return stored
    await session.execute(
        _SKIP_PAUSED,
        stored.job.job_id,
        missed.settled,
        [skip.from_ for skip in missed.skips],
        [skip.to for skip in missed.skips],
        [skip.count for skip in missed.skips],
        [skip.reason.value for skip in missed.skips],
        stored.now,
    )
    return await _read_again(session, stored)


async def _read_again(session: Session, stored: StoredJob) -> StoredJob:
    return await read_job(session, stored.job.tenant_id, stored.job.job_id, stored.now)
