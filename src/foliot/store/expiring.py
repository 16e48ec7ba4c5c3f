"""Executions that nobody started before their start deadline: FAILED, with a dead letter."""

from datetime import datetime
from typing import Final

from foliot.core.fingerprint import fingerprint
from foliot.core.ids import ExecutionId
from foliot.core.model import ErrorType, Failure
from foliot.store.database import Database
from foliot.store.failure_records import failure_as_json
from foliot.store.statements import statement

_EXPIRE: Final = statement("executions/expire")

PAGE_ROWS: Final = 1000
EXPIRED: Final = Failure(ErrorType.EXPIRED, "not started before its start deadline")


async def expire(
    database: Database, limit: int = PAGE_ROWS, now: datetime | None = None
) -> tuple[ExecutionId, ...]:
    """Those that were ended, at most `limit`; as many as that means there may be more."""
    error = failure_as_json(EXPIRED)
    rows = await database.fetch(_EXPIRE, limit, error, fingerprint(EXPIRED), now)
    return tuple(ExecutionId(row["id"]) for row in rows)
