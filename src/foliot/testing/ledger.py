"""The ledger of the jobs of a test, as the product checks it."""

from datetime import datetime
from typing import Any, Final

from foliot.core.ids import JobId, TenantId
from foliot.core.schedule.ledger import JobLedger
from foliot.store.database import Database
from foliot.store.ledger import check_page, open_scope
from foliot.testing.database import sql

_END: Final = sql("""
with gone as (delete from foliot.executions e where e.job_id = $1 returning e as row)
insert into foliot.attempts
select a.* from gone g
 cross join lateral foliot.as_attempt(g.row, 'SUCCEEDED', true, $2, null, null, false, null, null) a
""")


async def check_ledger(
    database: Database,
    now: datetime,
    tenant_id: TenantId | None = None,
    **asked: Any,  # noqa: ANN401 - what a scope takes
) -> list[JobLedger]:
    """Of all jobs, in pages of two."""
    scope = await open_scope(database, tenant_id=tenant_id, now=now, **asked)
    found: list[JobLedger] = []
    last: JobId | None = None
    while True:
        page = await check_page(database, scope, after=last, limit=2)
        found += page.ledgers
        last = page.last
        if last is None:
            return found


async def check_one(database: Database, now: datetime, **asked: Any) -> JobLedger:  # noqa: ANN401
    """Of the one job there is, or that is asked about."""
    (found,) = await check_ledger(database, now, **asked)
    return found


def counts(found: JobLedger) -> tuple[int, int, int, int]:
    """Expected, fired, skipped, due."""
    return found.expected, found.fired, found.skipped, found.due


async def end_all(database: Database, job_id: JobId, now: datetime) -> None:
    """Whatever is live of a job has succeeded."""
    await database.execute(_END, job_id, now)
