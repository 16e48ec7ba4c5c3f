"""All that a run has left behind, read into one value: the tables and the log of changes in one
snapshot of the database, and the records from the run's folder.

Rows come in pages and are kept lean: of 150,000 attempts it takes some hundred megabytes.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import asyncpg

from chaos.asking import connect
from chaos.facts import Change, Facts, Row
from chaos.lean_row import Columns, columns_of, lean
from chaos.outcries import read_outcries
from chaos.record import read_effects, read_exchanges, read_faults, read_samples

PAGE_ROWS: Final = 2_000
TABLES: Final = {
    "jobs": "select * from foliot.jobs order by id",
    "job_versions": "select * from foliot.job_versions order by job_id, version",
    "executions": "select * from foliot.executions order by id",
    "attempts": "select * from foliot.attempts order by id, fence, finished_at",
    "skips": "select * from foliot.skips order by job_id, from_instant",
    "dead_letters": "select * from foliot.dead_letters order by id",
    "workers": "select * from foliot.workers order by registered_at",
    "limits": "select distinct on (key) key, max_running, rate_count, rate_seconds"
    " from chaos.limits order by key, number desc",
    "rate_starts": "select key, at, started from chaos.rate_starts order by number",
    "queues": "select * from foliot.queues order by name",
    "reports": "select kind, execution_id, fence, said,"
    " pg_xact_commit_timestamp(transaction_id::xid) as committed_at"
    " from chaos.reports order by number",
    "shard_leases": "select * from foliot.shard_leases order by shard",
}
EXECUTION_CHANGES: Final = """
select number, transaction_id::text::bigint as transaction,
       pg_xact_commit_timestamp(transaction_id::xid) as committed_at, old, new
  from chaos.execution_changes order by number"""
LEASE_CHANGES: Final = EXECUTION_CHANGES.replace("execution_changes", "lease_changes")
QUEUE_CHANGES: Final = EXECUTION_CHANGES.replace("execution_changes", "queue_changes")


@dataclass(frozen=True, slots=True)
class Course:
    """What only who ran it knows: when it began and when the last fault was over."""

    seed: int
    began_at: datetime
    calm_at: datetime
    calm: float


async def gather(admin_url: str, folder: Path, course: Course) -> Facts:
    connection = await connect(admin_url)
    try:
        await connection.set_type_codec(
            "jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
        )
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            read_at: datetime = await connection.fetchval("select clock_timestamp()")
            tables = {name: await _table(connection, query) for name, query in TABLES.items()}
            execution_changes = await _changes(connection, EXECUTION_CHANGES)
            lease_changes = await _changes(connection, LEASE_CHANGES)
            queue_changes = await _changes(connection, QUEUE_CHANGES)
    finally:
        await connection.close()
    return Facts(
        began_at=course.began_at,
        calm_at=course.calm_at,
        read_at=read_at,
        calm=course.calm,
        **tables,
        execution_changes=execution_changes,
        lease_changes=lease_changes,
        queue_changes=queue_changes,
        effects=tuple(read_effects(folder)),
        exchanges=tuple(read_exchanges(folder)),
        faults=tuple(read_faults(folder)),
        samples=tuple(read_samples(folder)),
        outcries=tuple(read_outcries(folder)),
        seed=course.seed,
    )


async def _table(connection: asyncpg.Connection, query: str) -> tuple[Row, ...]:
    rows: list[Row] = []
    columns: Columns | None = None
    async for record in _records(connection, query):
        columns = columns or columns_of(record.keys())
        rows.append(lean(columns, record.values()))
    return tuple(rows)


async def _changes(connection: asyncpg.Connection, query: str) -> tuple[Change, ...]:
    changes: list[Change] = []
    family = _Family()
    async for record in _records(connection, query):
        old = family.row(record["old"])
        new = family.row(record["new"])
        if old is not None and new is None:
            family.forget(record["old"])
        changes.append(
            Change(record["number"], record["transaction"], record["committed_at"], old, new)
        )
    return tuple(changes)


async def _records(connection: asyncpg.Connection, query: str) -> AsyncIterator[asyncpg.Record]:
    async for record in connection.cursor(query, prefetch=PAGE_ROWS):
        yield record


class _Family:
    """Rows of one table that follow each other: what a row was before a change is what it had
    become by the last one, and the two are kept once."""

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._last: dict[object, tuple[tuple[Any, ...], Row]] = {}

    def row(self, record: asyncpg.Record | None) -> Row | None:
        if record is None:
            return None
        self._columns = self._columns or columns_of(record.keys())
        values = tuple(record.values())
        known = self._last.get(values[0])
        if known is None or known[0] != values:
            known = self._last[values[0]] = (values, lean(self._columns, values))
        return known[1]

    def forget(self, record: asyncpg.Record) -> None:
        self._last.pop(record[0], None)
