"""Jobs for tests, made as users make them, and what has become of their instants."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from foliot.core.ids import JobId
from foliot.core.model import HandlerTarget, Job, OverlapPolicy, Schedule, ScheduleType
from foliot.store.database import Database
from foliot.store.firing import fire_batch
from foliot.store.job_rows import StoredJob
from foliot.store.jobs import create
from foliot.store.staging import settle_due, stage_due
from foliot.testing.database import sql
from foliot.testing.rows import DEFAULT_TENANT, NOW, fresh_id

EVERY_MINUTE: Final = Schedule(
    ScheduleType.INTERVAL, interval_seconds=60, overlap_policy=OverlapPolicy.ALLOW
)
_OUTCOMES: Final = sql("""
select scheduled_time as at, job_version::text as what from foliot.executions where job_id = $1
union all
select scheduled_time, status from foliot.attempts where job_id = $1
union all
select from_instant, reason || ' ' || count from foliot.skips where job_id = $1
order by 1
""")


def new_job(
    schedule: Schedule = EVERY_MINUTE,
    **changes: Any,  # noqa: ANN401 - a value for any field
) -> Job:
    job_id = JobId(fresh_id())
    job = Job(job_id, DEFAULT_TENANT, f"job-{job_id}", schedule, HandlerTarget("work"))
    return replace(job, **{"created_by": "alice"} | changes)


async def create_job(database: Database, job: Job | None = None, now: datetime = NOW) -> StoredJob:
    """By alice, at `NOW`."""
    return await create(database, job or new_job(), changed_by="alice", now=now)


async def fire_due(database: Database, now: datetime, *, take: bool = False) -> None:
    """What one scheduler for all shards would do at `now`."""
    high = now + timedelta(microseconds=1)
    due = await stage_due(database, range(64), low=None, high=high, limit=1000)
    fires = [settle_due(one, now) for one in due]
    await fire_batch(database, [fire for fire in fires if fire], take=take, now=now)


async def outcomes(database: Database, job: Job) -> list[tuple[datetime, str]]:
    """By instant: the version of a live execution, the state of an ended one, or why and how many
    were skipped from there on."""
    return [(row["at"], row["what"]) for row in await database.fetch(_OUTCOMES, job.job_id)]
