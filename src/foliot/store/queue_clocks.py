"""How far the lanes have come: old marks are forgotten, the ones in use are kept.

Every claim leaves a mark. Two of a lane's are ever asked for: the farthest, which is its virtual
time, and the newest that is older than ten seconds, from which claims begin to look.
"""

from datetime import datetime
from typing import Final

from foliot.store.database import Database
from foliot.store.statements import statement

_FORGET_CLOCKS: Final = statement("queues/forget_clocks")

BATCH: Final = 10_000


async def forget_clocks(
    database: Database, now: datetime | None = None, *, batch: int = BATCH
) -> int:
    """Remove up to `batch` old marks; how many went. Safe on several nodes at once."""
    return int(await database.fetch_value(_FORGET_CLOCKS, now, batch))
