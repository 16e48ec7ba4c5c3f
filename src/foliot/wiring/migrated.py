"""A role that needs the tables waits until somebody has made them."""

import logging

from foliot.runtime.clock import Clock
from foliot.store.connecting import growing_delays
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseUnreachable, TransactionConflict
from foliot.store.readiness import read_readiness

log = logging.getLogger(__name__)


async def wait_until_migrated(database: Database, clock: Clock) -> None:
    """Says why not, one line for each new reason."""
    said = ""
    for delay in growing_delays():
        reason = await _not_ready_because(database)
        if not reason:
            return
        if reason != said:
            said = reason
            log.warning("%s; waiting", reason)
        await clock.sleep(delay)


async def _not_ready_because(database: Database) -> str:
    try:
        readiness = await read_readiness(database)
    except (DatabaseUnreachable, CommitUnknown, TransactionConflict) as loss:
        return str(loss)
    if not readiness.has_schema:
        level, needed = readiness.level, readiness.level_needed
        return f"the database has migration {level} of {needed} (run `foliot db migrate`)"
    return "" if readiness.writable else "the database can only be read"
