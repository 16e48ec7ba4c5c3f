"""Dead letters for tests, made as they come about: by the last failure of a worker's attempt."""

from datetime import datetime
from typing import Any, Final

from foliot.core.ids import ExecutionId
from foliot.core.model import ErrorType, Failure
from foliot.core.retry import DeadLetterReason
from foliot.core.states import ExecutionEvent
from foliot.store.database import Database
from foliot.store.finishing import Outcome, finish
from foliot.testing.database import sql
from foliot.testing.rows import NOW, JobRow
from foliot.testing.running import make_running

BROKEN: Final = Failure(ErrorType.HANDLER_ERROR, "it broke")
_SET_POLICY: Final = sql(
    "update foliot.job_versions set definition = definition || jsonb_build_object('dead_letter',"
    " jsonb_build_object('auto_replay_after_seconds', $2::float8)) where job_id = $1"
)
_SET_CONCURRENCY: Final = sql(
    "update foliot.job_versions set definition = definition || jsonb_build_object('concurrency',"
    " jsonb_build_object('key', $2::text, 'limit', $3::integer)) where job_id = $1"
)


async def make_letters(
    database: Database,
    number: int = 1,
    *,
    job: JobRow | None = None,
    failure: Failure = BROKEN,
    reason: DeadLetterReason = DeadLetterReason.EXHAUSTED,
    failed_at: datetime = NOW,
    **changes: Any,  # noqa: ANN401 - a value for any column of the executions
) -> list[ExecutionId]:
    """Executions that failed at `failed_at`, in the order of their ids."""
    worker, rows = await make_running(database, number, job=job, **changes)
    outcomes = [
        Outcome(row.execution_id, row.fence, ExecutionEvent.FAIL, None, failure, dead_letter=reason)
        for row in rows
    ]
    await finish(database, worker, outcomes, failed_at)
    return sorted(row.execution_id for row in rows)


async def ask_for_replays(database: Database, job: JobRow, seconds: float | None) -> None:
    """By the job's own policy, from its current version on."""
    await database.execute(_SET_POLICY, job.job_id, seconds)


async def limit_by_key(database: Database, job: JobRow, key: str | None, at_most: int) -> None:
    await database.execute(_SET_CONCURRENCY, job.job_id, key, at_most)
