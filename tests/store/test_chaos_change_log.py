"""The log of changes that the proof reads: complete, in order, whoever writes."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg
import pytest_asyncio

from chaos.watched_server import install_change_log
from foliot.store.database import Database
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.rows import DEFAULT_TENANT, make_execution, make_worker


@pytest_asyncio.fixture
async def admin(server: DatabaseFactory, database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """The superuser in the test's database, which has the log."""
    name = urlsplit(database_url).path.removeprefix("/")
    connection = await asyncpg.connect(server.admin_url, database=name)
    await install_change_log(connection)
    yield connection
    await connection.close()


async def statuses(admin: asyncpg.Connection) -> list[tuple[str | None, str | None]]:
    rows = await admin.fetch(
        "select (old).status, (new).status from chaos.execution_changes order by number"
    )
    return [(row[0], row[1]) for row in rows]


async def test_each_change_of_an_execution_is_logged_in_order(
    admin: asyncpg.Connection, database: Database
) -> None:
    execution, worker = await make_execution(database), await make_worker(database)
    claim = (
        "update foliot.executions set status = 'RUNNING', worker_id = $2, fence = 1 where id = $1"
    )
    await database.execute(sql(claim), execution.execution_id, worker)
    await database.execute(
        sql("delete from foliot.executions where id = $1"), execution.execution_id
    )
    assert await statuses(admin) == [(None, "QUEUED"), ("QUEUED", "RUNNING"), ("RUNNING", None)]
    (claimed,) = await admin.fetch(
        "select (new).id, (new).worker_id, (new).fence, (new).rank, (old).fence as before,"
        "       (new).scheduled_time from chaos.execution_changes where number = 2"
    )
    assert claimed["id"] == execution.execution_id
    assert claimed["worker_id"] == worker
    assert (claimed["before"], claimed["fence"]) == (0, 1)
    assert claimed["scheduled_time"] == execution.scheduled_time


async def test_what_a_tenant_changes_is_logged_and_hidden_from_it(
    admin: asyncpg.Connection, database: Database
) -> None:
    execution = await make_execution(database)
    async with database.transaction(DEFAULT_TENANT) as session:
        change = "update foliot.executions set cancel_requested_at = now() where id = $1"
        assert await session.execute(sql(change), execution.execution_id) == 1
    asked = "select (new).cancel_requested_at is not null from chaos.execution_changes"
    assert [row[0] for row in await admin.fetch(f"{asked} order by number")] == [False, True]
    may = await admin.fetchval(
        "select has_table_privilege('foliot_tenant', 'chaos.execution_changes', 'select')"
        "    or has_schema_privilege('foliot_tenant', 'chaos', 'usage')"
    )
    assert may is False


async def test_a_change_that_nobody_looks_at_is_not_logged(
    admin: asyncpg.Connection, database: Database
) -> None:
    execution = await make_execution(database)
    change = "update foliot.executions set progress = '{}' where id = $1"
    await database.execute(sql(change), execution.execution_id)
    assert await statuses(admin) == [(None, "QUEUED")]


async def test_changes_that_are_rolled_back_leave_nothing(
    admin: asyncpg.Connection, database: Database
) -> None:
    execution = await make_execution(database)
    delete = sql("delete from foliot.executions where id = $1")
    async with database.connection() as session:
        await session.execute(sql("begin"))
        await session.execute(delete, execution.execution_id)
        await session.execute(sql("rollback"))
    assert await statuses(admin) == [(None, "QUEUED")]


async def test_leases_starts_and_limits_are_logged(
    admin: asyncpg.Connection, database: Database
) -> None:
    await database.execute(sql("update foliot.shard_leases set epoch = epoch + 1 where shard = 3"))
    rows = await admin.fetch(
        "select (old).epoch, (new).epoch, (new).shard from chaos.lease_changes"
    )
    assert [tuple(row) for row in rows] == [(0, 1, 3)]
    await database.execute(sql("insert into foliot.rate_starts values ('k', now(), 2)"))
    await database.execute(sql("delete from foliot.rate_starts"))
    assert await admin.fetchval("select started from chaos.rate_starts where key = 'k'") == 2
    await database.execute(sql("insert into foliot.limits (key, max_running) values ('k', 3)"))
    await database.execute(sql("update foliot.limits set max_running = 4"))
    await database.execute(sql("delete from foliot.limits"))
    kept = await admin.fetch("select max_running from chaos.limits order by number")
    assert [row[0] for row in kept] == [3, 4]
