"""Executions that somebody no longer wants.

What waits is over at once. What runs is asked to stop: its worker reads the wish with its next
heartbeat, and whatever it reports afterwards is stored as CANCELLED. Asking twice changes nothing.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from foliot.core.ids import ExecutionId, TenantId
from foliot.core.model import ErrorType, Failure
from foliot.store.database import Database
from foliot.store.failure_records import failure_as_json
from foliot.store.session import Session
from foliot.store.statements import statement

_CANCEL: Final = statement("executions/cancel")


class Cancellation(StrEnum):
    """What a request to cancel came to."""

    CANCELLED = "CANCELLED"
    ASKED = "ASKED"  # it runs; it is CANCELLED when its worker lets go
    NOT_LIVE = "NOT_LIVE"  # finished, or not the tenant's: history knows


async def cancel(
    database: Database | Session,
    tenant_id: TenantId,
    execution_ids: Sequence[ExecutionId],
    reason: str,
    now: datetime | None = None,
) -> dict[ExecutionId, Cancellation]:
    """One answer for each id. In a tenant's transaction it keeps to that tenant's rights."""
    error = failure_as_json(Failure(ErrorType.CANCELLED, reason))
    rows = await database.fetch(_CANCEL, tenant_id, sorted(set(execution_ids)), error, now)
    found = {
        ExecutionId(row["id"]): Cancellation.CANCELLED
        if row["status"] == "CANCELLED"
        else Cancellation.ASKED
        for row in rows
    }
    return {each: found.get(each, Cancellation.NOT_LIVE) for each in execution_ids}
