"""What time it is: only the database says."""

from datetime import datetime
from typing import Final

from foliot.store.database import Database
from foliot.store.statements import statement

_READ_CLOCK: Final = statement("schema/read_clock")


async def read_clock(database: Database, now: datetime | None = None) -> datetime:
    """The time at which the question reached the server."""
    told: datetime = await database.fetch_value(_READ_CLOCK, now)
    return told
