"""What a statement made the server read, counted by the server itself.

The counts are those of the session's open transaction, so there is nothing to wait for and nobody
else is in them. They see inside functions, where EXPLAIN does not look. The indexes of a partition
are counted under the names that they have in the table they are part of.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import asyncpg

TOUCHED: Final = """
select coalesce(p.relname, c.relname) as name, c.relkind = 'i' as is_index,
       pg_stat_get_xact_numscans(c.oid) as searches,
       pg_stat_get_xact_tuples_returned(c.oid) as rows_read,
       pg_stat_get_xact_blocks_fetched(c.oid) as blocks
  from pg_catalog.pg_class c
  left join pg_catalog.pg_inherits i on i.inhrelid = c.oid
  left join pg_catalog.pg_class p on p.oid = i.inhparent
 where c.relnamespace = 'foliot'::regnamespace and c.relkind in ('r', 'i')"""


@dataclass(frozen=True)
class Touched:
    """By name: rows that scans of whole tables read, searches of indexes and the entries they read;
    and the pages of everything."""

    scanned: Counter[str]
    searches: Counter[str]
    entries: Counter[str]
    blocks: int

    def __sub__(self, other: "Touched") -> "Touched":
        return Touched(
            self.scanned - other.scanned,
            self.searches - other.searches,
            self.entries - other.entries,
            self.blocks - other.blocks,
        )


async def read_touched(db: asyncpg.Connection) -> Touched:
    """Everything that this transaction has read so far."""
    scanned, searches, entries = Counter[str](), Counter[str](), Counter[str]()
    blocks = 0
    for row in await db.fetch(TOUCHED):
        blocks += row["blocks"]
        if row["is_index"]:
            searches[row["name"]] += row["searches"]
            entries[row["name"]] += row["rows_read"]
        else:
            scanned[row["name"]] += row["rows_read"]
    return Touched(scanned, searches, entries, blocks)


async def measure(db: asyncpg.Connection, sql: str, *arguments: object) -> tuple[int, Touched]:
    """How many rows a statement returns or changes, and what it touched; inside a transaction."""
    before = await read_touched(db)
    tag = await db.execute(sql, *arguments)
    return int(tag.rpartition(" ")[2]), await read_touched(db) - before
