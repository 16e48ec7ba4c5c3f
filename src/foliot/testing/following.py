"""Jobs that follow others, for tests, and ends for them to follow."""

from datetime import datetime
from typing import Any, Final

from foliot.core.ids import ExecutionId, JobId
from foliot.core.model import After, Job, OverlapPolicy, Schedule, ScheduleType
from foliot.core.states import ExecutionEvent
from foliot.store.database import Database
from foliot.store.finishing import Outcome, finish
from foliot.testing.database import sql
from foliot.testing.jobs import create_job, new_job
from foliot.testing.rows import NOW, JobRow, make_job
from foliot.testing.running import make_running

MANUAL: Final = Schedule(ScheduleType.MANUAL)
_LIVE: Final = sql("select * from foliot.executions where job_id = $1 order by scheduled_time, id")
_SKIPS: Final = sql(
    "select from_instant, reason from foliot.skips where job_id = $1 order by from_instant"
)


async def make_parent(database: Database, **changes: Any) -> JobRow:  # noqa: ANN401
    return await make_job(database, MANUAL, next_instant=None, **changes)


def follower(after: After, **changes: Any) -> Job:  # noqa: ANN401
    """A job that follows others; of its schedule the overlap and misfire policies can be told."""
    of_schedule = {
        name: changes.pop(name) for name in ("overlap_policy", "misfire_policy") if name in changes
    }
    of_schedule.setdefault("overlap_policy", OverlapPolicy.ALLOW)
    return new_job(Schedule(ScheduleType.AFTER, after=after, **of_schedule), **changes)


async def make_child(database: Database, after: After, **changes: Any) -> Job:  # noqa: ANN401
    """Created at `NOW`, as users do."""
    return (await create_job(database, follower(after, **changes))).job


async def end_one(
    database: Database,
    parent: JobRow,
    event: ExecutionEvent = ExecutionEvent.SUCCEED,
    at: datetime = NOW,
) -> ExecutionId:
    """An execution of the parent runs and ends."""
    worker, (row,) = await make_running(database, 1, job=parent, notify=False)
    await finish(database, worker, [Outcome(row.execution_id, row.fence, event)], at)
    return row.execution_id


async def live_of(database: Database, job_id: JobId) -> list[dict[str, Any]]:
    return [dict(row) for row in await database.fetch(_LIVE, job_id)]


async def skips_of(database: Database, job_id: JobId) -> list[tuple[datetime, str]]:
    return [(row["from_instant"], row["reason"]) for row in await database.fetch(_SKIPS, job_id)]
