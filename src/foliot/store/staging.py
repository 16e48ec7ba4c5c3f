"""Staging: the jobs that are due soon, and what their due instants become.

Nothing is inserted ahead of time. What is staged lives in the memory of a scheduler until it is
fired, and firing compares it with the row, so a pause, an edit or a delete needs no withdrawal.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Final

import asyncpg

from foliot.core.ids import JobId, TenantId, scheduled_execution
from foliot.core.model import OverlapPolicy, Schedule, SkipReason
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.jitter import available_at
from foliot.core.schedule.misfire import settle
from foliot.core.schedule.occurrences import ScheduleFacts, next_occurrence
from foliot.core.schedule.timeline import TICK
from foliot.store.database import Database
from foliot.store.definitions import calendar_from_json, schedule_from_json
from foliot.store.firing import Fire, JobFire
from foliot.store.statements import statement

_STAGE_DUE: Final = statement("jobs/stage_due")


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


async def stage_due(
    database: Database,
    shards: Iterable[int],
    *,
    low: datetime | None,
    high: datetime,
    limit: int,
) -> list[DueJob]:
    """The jobs of `shards` that are due at low <= time < high, soonest first."""
    rows = await database.fetch(_STAGE_DUE, sorted(shards), low, high, limit)
    return [due_job(row) for row in rows]


def due_job(row: asyncpg.Record) -> DueJob:
    calendar = row["calendar"]
    return DueJob(
        job_id=row["job_id"],
        tenant_id=row["tenant_id"],
        queue=row["queue"],
        expected=row["next_instant"],
        next_run_at=row["next_run_at"],
        schedule_version=row["schedule_version"],
        schedule=_schedule(row["schedule"]),
        facts=ScheduleFacts(
            job_id=row["job_id"],
            created_at=row["counted_from"],
            calendar=None if calendar is None else _calendar(calendar),
            fired_count=row["fired_count"],
        ),
    )


def settle_due(
    due: DueJob, now: datetime, cause: SkipReason = SkipReason.MISFIRE
) -> JobFire | None:
    """What the instants up to `now` become; None if there are none yet."""
    settlement = settle(due.schedule, due.facts, after=due.expected - TICK, now=now, cause=cause)
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
    )


def jittered(schedule: Schedule, facts: ScheduleFacts, instant: datetime) -> datetime:
    """When the execution of `instant` may start."""
    if not schedule.jitter_seconds:
        return instant
    following = next_occurrence(_endless(schedule), facts, instant)
    return available_at(schedule, facts.job_id, instant, following.instant if following else None)


def _endless(schedule: Schedule) -> Schedule:
    """Without `max_runs`: whether the last run has been reached is known once it has fired."""
    return schedule if schedule.max_runs is None else replace(schedule, max_runs=None)


@lru_cache(maxsize=4096)
def _schedule(text: str) -> Schedule:
    """Many jobs share their schedule, word for word."""
    return schedule_from_json(json.loads(text))


@lru_cache(maxsize=256)
def _calendar(text: str) -> Calendar:
    return calendar_from_json(json.loads(text))
