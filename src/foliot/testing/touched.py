"""What a statement made the server read, counted by the server itself.

The counts are those of the session's open transaction, so there is nothing to wait for and nobody
else is in them. They see inside functions, where EXPLAIN does not look.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import asyncpg

TOUCHED: Final = """
select c.relname as name, c.relkind = 'i' as is_index,
       pg_stat_get_xact_numscans(c.oid) as scans,
       pg_stat_get_xact_tuples_returned(c.oid) as rows_read,
       pg_stat_get_xact_blocks_fetched(c.oid) as blocks
  from pg_catalog.pg_class c
 where c.relnamespace = 'foliot'::regnamespace and c.relkind in ('r', 'i')"""


@dataclass(frozen=True)
class Touched:
    """Scans of whole tables by name, entries of indexes by name, pages of everything."""

    scans: Counter[str]
    entries: Counter[str]
    blocks: int

    def __sub__(self, other: "Touched") -> "Touched":
        return Touched(
            self.scans - other.scans, self.entries - other.entries, self.blocks - other.blocks
        )


async def read_touched(db: asyncpg.Connection) -> Touched:
    """Everything that this transaction has read so far."""
    rows = await db.fetch(TOUCHED)
    return Touched(
        Counter({row["name"]: row["scans"] for row in rows if not row["is_index"]}),
        Counter({row["name"]: row["rows_read"] for row in rows if row["is_index"]}),
        sum(row["blocks"] for row in rows),
    )


async def measure(db: asyncpg.Connection, sql: str, *arguments: object) -> tuple[int, Touched]:
    """How many rows a statement returns, and what it touched; inside a transaction."""
    before = await read_touched(db)
    rows = await db.fetch(sql, *arguments)
    return len(rows), await read_touched(db) - before
