"""Why an execution is not running, read from the rows of one moment.

A live execution is told of by one call, in which everything fits together; one that is not live is
over, or another tenant's, or never was.
"""

from datetime import datetime
from typing import Any, Final

import msgspec

from foliot.core.explain import explain
from foliot.core.explain_running import explain_end
from foliot.core.explanation import Ending, Explanation, Facts
from foliot.core.grace import EXPIRY_SECONDS
from foliot.core.ids import ExecutionId, TenantId
from foliot.core.reason_words import COUNT_MAX
from foliot.core.states import TERMINAL
from foliot.store.database import Database
from foliot.store.execution_rows import StoredExecution, read_executions, searched
from foliot.store.shards import LEASE_SECONDS
from foliot.store.statements import statement

_EXPLAIN: Final = statement("executions/explain")
# One that comes into being between the two readings is live in the next.
_LOOKS: Final = 3


async def explain_execution(
    database: Database,
    tenant_id: TenantId,
    execution_id: ExecutionId,
    now: datetime | None = None,
) -> Explanation | None:
    """None if this tenant has and had no such execution."""
    for _ in range(_LOOKS):
        facts = await read_facts(database, tenant_id, execution_id, now)
        if facts is not None:
            return explain(facts)
        found = await read_executions(database, tenant_id, [execution_id])
        if execution_id not in found:
            return None
        if found[execution_id].status in TERMINAL:
            return explain_end(_ending(found[execution_id]))
    return None


async def read_facts(
    database: Database,
    tenant_id: TenantId,
    execution_id: ExecutionId,
    now: datetime | None = None,
) -> Facts | None:
    """None if it is not live."""
    for id_, since in searched([execution_id]):
        known: Any = await database.fetch_value(
            _EXPLAIN,
            id_,
            tenant_id,
            since,
            EXPIRY_SECONDS,
            LEASE_SECONDS,
            COUNT_MAX + 1,
            now,
        )
        return None if known is None else msgspec.convert(known, Facts)
    return None


def _ending(stored: StoredExecution) -> Ending:
    return Ending(
        stored.execution_id,
        stored.status,
        stored.finished_at,
        stored.attempt_number,
        stored.error,
        stored.dead_letter_id,
    )
