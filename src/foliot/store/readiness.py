"""Whether the database can serve: it answers, knows our tables, and takes writes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.store.database import Database
from foliot.store.errors import StatementFailed
from foliot.store.migration_files import packaged_migrations
from foliot.store.statements import statement

_READ_READINESS: Final = statement("schema/read_readiness")
NO_SUCH_TABLE: Final = frozenset({"42P01", "3F000"})


@dataclass(frozen=True)
class Readiness:
    """What the database says of itself; `now` is its clock, None where it has no tables yet."""

    now: datetime | None
    level: int
    level_needed: int
    writable: bool

    @property
    def has_schema(self) -> bool:
        """A newer one will do: while Foliot is renewed node by node, old and new run together."""
        return self.level >= self.level_needed

    @property
    def ready(self) -> bool:
        return self.writable and self.has_schema


async def read_readiness(database: Database, now: datetime | None = None) -> Readiness:
    """One round trip; a database that does not answer raises."""
    needed = len(packaged_migrations())
    try:
        (row,) = await database.fetch(_READ_READINESS, now)
    except StatementFailed as failure:
        if failure.sqlstate not in NO_SUCH_TABLE:
            raise
        return Readiness(now=None, level=0, level_needed=needed, writable=False)
    return Readiness(row["now"], row["level"], needed, row["writable"])
