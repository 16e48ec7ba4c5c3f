"""Staging: the jobs that are due soon, and what their due instants become.

Nothing is inserted ahead of time. What is staged lives in the memory of a scheduler until it is
fired, and firing compares it with the row, so a pause, an edit or a delete needs no withdrawal.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from uuid import UUID

import asyncpg

from foliot.core.ids import JobId, TenantId, scheduled_execution
from foliot.core.model import OverlapPolicy, Schedule, ScheduleType, SkipReason
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.jitter import available_at, window
from foliot.core.schedule.misfire import Settlement, settle
from foliot.core.schedule.occurrences import BEGINNING, ScheduleFacts, next_occurrence
from foliot.core.schedule.timeline import TICK
from foliot.store.database import Database
from foliot.store.definitions import calendar_from_json, schedule_from_json
from foliot.store.firing import Fire, JobFire
from foliot.store.statements import statement

_STAGE_DUE: Final = statement("jobs/stage_due")
_NO_JOB: Final = JobId(UUID(int=0))


@dataclass(frozen=True, slots=True)
class DueJob:
    """A job as its row and its version say, to be settled. `expected` is its next instant."""

    job_id: JobId
    tenant_id: TenantId
    queue: str
    expected: datetime
    next_run_at: datetime
    schedule_version: int
    schedule: Schedule
    facts: ScheduleFacts


@dataclass(frozen=True, slots=True)
class DuePage:
    """Jobs, soonest first. `unreadable` are those that this Foliot cannot read, each with the
    reason: a newer one may have written them. `is_full`: there may be more from `last` on."""

    jobs: tuple[DueJob, ...]
    unreadable: tuple[tuple[JobId, Exception], ...]
    is_full: bool
    first: datetime | None
    last: datetime | None


async def stage_page(
    database: Database,
    shards: Iterable[int],
    *,
    low: datetime | None,
    high: datetime,
    limit: int,
) -> DuePage:
    """The first `limit` jobs of `shards` that are due at low <= time < high."""
    rows = await database.fetch(_STAGE_DUE, sorted(shards), low, high, limit)
    jobs: list[DueJob] = []
    unreadable: list[tuple[JobId, Exception]] = []
    for row in rows:
        try:
            jobs.append(due_job(row))
        except Exception as error:  # noqa: BLE001 - one bad row keeps no other from being fired
            unreadable.append((row["job_id"], error))
    times = [row["next_run_at"] for row in (*rows[:1], *rows[-1:])]
    return DuePage(
        tuple(jobs),
        tuple(unreadable),
        len(rows) >= limit,
        times[0] if times else None,
        times[-1] if times else None,
    )


async def stage_due(
    database: Database,
    shards: Iterable[int],
    *,
    low: datetime | None,
    high: datetime,
    limit: int,
) -> list[DueJob]:
    """The same, where every job can be read."""
    page = await stage_page(database, shards, low=low, high=high, limit=limit)
    for _, error in page.unreadable:
        raise error
    return list(page.jobs)


def due_job(row: asyncpg.Record) -> DueJob:
    calendar = row["calendar"]
    return DueJob(
        job_id=row["job_id"],
        tenant_id=row["tenant_id"],
        queue=row["queue"],
        expected=row["next_instant"],
        next_run_at=row["next_run_at"],
        schedule_version=row["schedule_version"],
        schedule=read_schedule(row["schedule"]),
        facts=ScheduleFacts(
            job_id=row["job_id"],
            created_at=row["counted_from"],
            calendar=None if calendar is None else read_calendar(calendar),
            fired_count=row["fired_count"],
        ),
    )


def settle_due(
    due: DueJob, now: datetime, cause: SkipReason = SkipReason.MISFIRE
) -> JobFire | None:
    """What the instants up to `now` become; None if there are none yet. Where over a thousand are
    to fire it is the oldest of them, and the next instant is due as well."""
    settlement = _settlement(due, now, cause)
    if not settlement.fires and not settlement.skips:
        return None
    ends = [*settlement.fires[-1:], *(skip.to for skip in settlement.skips[-1:])]
    settled = max(ends)
    following = settlement.next
    if following is None and due.schedule.max_runs is not None:
        following = next_occurrence(_endless(due.schedule), due.facts, settled)
    next_instant = following.instant if following else None
    return JobFire(
        job_id=due.job_id,
        tenant_id=due.tenant_id,
        queue=due.queue,
        expected=due.expected,
        schedule_version=due.schedule_version,
        fires=tuple(
            Fire(
                scheduled_execution(due.job_id, instant),
                instant,
                jittered(due.schedule, due.facts, instant),
            )
            for instant in settlement.fires
        ),
        skips=settlement.skips,
        settled=settled,
        next_instant=next_instant,
        next_run_at=jittered(due.schedule, due.facts, next_instant) if next_instant else None,
        runs_left=due.facts.runs_left(due.schedule),
        replaces=due.schedule.overlap_policy is OverlapPolicy.CANCEL_PREVIOUS,
        holds_until=_holds_until(due.schedule, due.facts, settlement.fires),
    )


def _holds_until(
    schedule: Schedule, facts: ScheduleFacts, fires: Sequence[datetime]
) -> datetime | None:
    """Until when the oldest of these is not too late; None: without an end."""
    grace = schedule.misfire_grace_seconds
    if grace is None or not fires:
        return None
    until = fires[0] + timedelta(seconds=grace)
    if not schedule.jitter_seconds:
        return until
    return until + window(schedule, fires[0], _following(schedule, facts, fires[0]))


def _settlement(due: DueJob, now: datetime, cause: SkipReason) -> Settlement:
    if _is_shared(due):
        return _settle_herd(due.schedule, due.facts.calendar, due.expected, now, cause)
    return settle(due.schedule, due.facts, after=due.expected - TICK, now=now, cause=cause)


def _is_shared(due: DueJob) -> bool:
    """Whether every job with this schedule and instant settles alike: none has its own share of
    `H`, its own beginning or its own count of runs."""
    schedule, expression = due.schedule, due.schedule.cron_expression
    return (
        expression is not None
        and schedule.type is ScheduleType.CRON
        and schedule.max_runs is None
        and due.facts.created_at < due.expected - TICK
        and (expression.startswith("@") or "H" not in expression.upper())
    )


@lru_cache(maxsize=1024)
def _settle_herd(
    schedule: Schedule,
    calendar: Calendar | None,
    expected: datetime,
    now: datetime,
    cause: SkipReason,
) -> Settlement:
    """A herd shares its settlement: 0.5 µs for each instead of 20."""
    facts = ScheduleFacts(_NO_JOB, BEGINNING, calendar)
    return settle(schedule, facts, after=expected - TICK, now=now, cause=cause)


def jittered(schedule: Schedule, facts: ScheduleFacts, instant: datetime) -> datetime:
    """When the execution of `instant` may start."""
    if not schedule.jitter_seconds:
        return instant
    return available_at(schedule, facts.job_id, instant, _following(schedule, facts, instant))


def _following(schedule: Schedule, facts: ScheduleFacts, instant: datetime) -> datetime | None:
    """The instant after this one, run or skipped: the jitter ends there at the latest."""
    found = next_occurrence(_endless(schedule), facts, instant)
    return found.instant if found else None


def _endless(schedule: Schedule) -> Schedule:
    """Without `max_runs`: whether the last run has been reached is known once it has fired."""
    return schedule if schedule.max_runs is None else replace(schedule, max_runs=None)


@lru_cache(maxsize=4096)
def read_schedule(text: str) -> Schedule:
    """Many jobs share their schedule, word for word."""
    return schedule_from_json(json.loads(text))


@lru_cache(maxsize=256)
def read_calendar(text: str) -> Calendar:
    return calendar_from_json(json.loads(text))
