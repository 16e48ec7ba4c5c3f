"""Several ways to one database, opened one after the other: all of them or none.

Between the look whether it is there and the last of them it may go away again. A role that ended
over that would have to be started by somebody.
"""

from collections.abc import Sequence

from foliot.runtime.clock import Clock
from foliot.store.connecting import ConnectionOptions, growing_delays, wait_until_reachable
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseUnreachable, TransactionConflict


async def open_all(
    ways: Sequence[Database], url: str, options: ConnectionOptions, clock: Clock
) -> None:
    """Waits for a database that is not there yet, or not for long. The caller closes them."""
    for delay in growing_delays():
        await wait_until_reachable(url, clock, options=options)
        try:
            for way in ways:
                await way.close()
                await way.open()
        except (DatabaseUnreachable, CommitUnknown, TransactionConflict):
            await clock.sleep(delay)
        else:
            return
