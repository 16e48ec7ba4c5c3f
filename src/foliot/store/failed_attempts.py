"""The earlier failures of an execution: whether they came too fast to be worth another try."""

from datetime import datetime
from typing import Final

from foliot.core.ids import ExecutionId
from foliot.core.model import RetryPolicy
from foliot.core.poison import is_poisoned
from foliot.store.database import Database
from foliot.store.statements import statement

_LIST_FAILURES: Final = statement("attempts/list_failures")


async def fails_too_fast(
    database: Database,
    execution_id: ExecutionId,
    policy: RetryPolicy,
    now: datetime | None = None,
) -> bool:
    """Whether a failure just now, together with those before it, is poison by the job's policy."""
    if policy.poison_window_seconds is None:
        return False
    rows = await database.fetch(_LIST_FAILURES, execution_id, policy.poison_window_seconds, now)
    moment: datetime = rows[0]["now"]
    earlier = [row["finished_at"] for row in rows if row["finished_at"] is not None]
    return is_poisoned(policy, [*earlier, moment], moment)
