"""The limits the server keeps for us, with their real values: what a frozen client cannot hold."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from foliot.store.database import Database
from foliot.store.errors import DatabaseUnreachable, TransactionConflict
from foliot.testing.database import sql

HOLD = sql("select pg_advisory_xact_lock(7)")
OPEN_TRANSACTIONS = sql(
    "select count(*) from pg_stat_activity"
    " where state = 'idle in transaction' and datname = current_database()"
)
HOLDER = """
import asyncio, sys
from foliot.store.database import Database
from foliot.store.statements import Statement

async def main():
    async with Database(sys.argv[1]) as database, database.transaction() as session:
        await session.execute(Statement("hold", "select pg_advisory_xact_lock(7)"))
        print("holding", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def takes(at_least: float, at_most: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert at_least <= time.monotonic() - began <= at_most


@asynccontextmanager
async def frozen_holder(url: str) -> AsyncIterator[None]:
    """A process that took a lock in a transaction and was then stopped."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, url, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"holding\n"
        os.kill(process.pid, signal.SIGSTOP)
        yield
    finally:
        process.kill()
        await process.communicate()


async def test_a_frozen_client_loses_its_lock_after_two_seconds(
    database: Database, database_url: str
) -> None:
    async with frozen_holder(database_url), database.transaction() as session:
        await session.execute(sql("set local lock_timeout = '4s'"))
        with takes(1.0, 3.5):
            await session.execute(HOLD)


async def test_an_idle_transaction_is_ended_and_has_changed_nothing(database: Database) -> None:
    await database.execute(sql("create table foliot.notes (note text)"))

    async def work() -> None:
        async with database.transaction() as session:
            await session.execute(sql("insert into foliot.notes values ('one')"))
            await session.execute(sql("set local idle_in_transaction_session_timeout = '50ms'"))
            while await database.fetch_value(OPEN_TRANSACTIONS):
                pass
            await session.fetch(sql("select 1"))

    with pytest.raises(DatabaseUnreachable):
        await work()
    assert await database.fetch_value(sql("select count(*) from foliot.notes")) == 0


async def test_a_lock_is_waited_for_one_second(database: Database) -> None:
    async with database.transaction() as holder:
        await holder.execute(HOLD)
        with takes(0.9, 1.8), pytest.raises(TransactionConflict) as caught:
            await database.execute(HOLD)
    assert caught.value.sqlstate == "55P03"


async def test_a_statement_is_ended_after_five_seconds(database: Database) -> None:
    with takes(4.9, 6.5), pytest.raises(TransactionConflict, match="it took too long") as caught:
        await database.execute(sql("select pg_sleep(20)"))
    assert caught.value.sqlstate == "57014"


async def test_a_long_transaction_is_ended_where_the_server_can(database: Database) -> None:
    known = await database.fetch_value(
        sql("select count(*) from pg_settings where name = 'transaction_timeout'")
    )
    assert await database.fetch_value(sql("show server_version_num")) < "170000" or known
    if known:
        assert await database.fetch_value(sql("show transaction_timeout")) == "10s"
