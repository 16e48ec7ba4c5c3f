"""Many clients on few connections. Behind a pooler (`FOLIOT_TEST_POOLER`) each statement may run on
another connection of the server than the one before; without one the same must hold."""

import asyncio
from uuid import UUID

import asyncpg
import pytest

from foliot.store.connecting import ConnectionOptions, connect
from foliot.store.database import Database
from foliot.store.errors import DatabaseUnreachable, StatementFailed
from foliot.store.session import READ_ARRAYS
from foliot.store.statements import every_statement
from foliot.store.tenancy import TENANT_ROLE
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.pooler import is_wanted
from foliot.testing.proxy import NodeProxy

CLIENTS = 16
ROUNDS = 25
TEXT_ARRAY = 1009  # the driver was born with it
OPTIONS = ConnectionOptions(max_connections=CLIENTS, prepare=False)


async def test_statements_at_once_get_their_own_answers(database_url: str) -> None:
    """Each client has statements of its own shape; none meets what another has prepared."""

    async def ask(database: Database, client: int) -> set[int]:
        columns = ", ".join(f"$1::int + {number}" for number in range(client + 1))
        statement = sql(f"select pg_backend_pid(), $2::text, {columns}")
        backends = set()
        async with database.connection() as session:
            for turn in range(ROUNDS):
                (row,) = await session.fetch(statement, turn, f"client {client}")
                backend, name, *numbers = row
                assert name == f"client {client}"
                assert numbers == [turn + number for number in range(client + 1)]
                backends.add(backend)
        return backends

    async with Database(database_url, OPTIONS) as database:
        found = await asyncio.gather(*(ask(database, client) for client in range(CLIENTS)))
    if is_wanted():
        assert max(map(len, found)) > 1, "nobody changed connections: this proves nothing"
    else:
        assert set(map(len, found)) == {1}


async def test_a_failed_statement_is_not_met_by_others(database_url: str) -> None:
    async def ask(database: Database, client: int) -> None:
        for turn in range(ROUNDS):
            if client % 2:
                with pytest.raises(StatementFailed, match="division by zero"):
                    await database.fetch_value(sql("select $1::int / 0"), turn)
            else:
                assert await database.fetch_value(sql("select $1::text"), str(turn)) == str(turn)

    async with Database(database_url, OPTIONS) as database:
        await asyncio.gather(*(ask(database, client) for client in range(CLIENTS)))


async def test_a_transaction_is_one_tenants_and_leaves_no_tenant_behind(database_url: str) -> None:
    """What a transaction sets for itself is gone for whoever gets the connection next."""
    who = sql("select current_user::text, foliot.current_tenant()")

    async def as_tenant(database: Database, tenant: UUID) -> None:
        for _ in range(ROUNDS):
            async with database.transaction(tenant) as session:
                assert tuple(*await session.fetch(who)) == (TENANT_ROLE, tenant)
                assert tuple(*await session.fetch(who)) == (TENANT_ROLE, tenant)

    async def as_engine(database: Database) -> None:
        for _ in range(ROUNDS):
            assert tuple(*await database.fetch(who)) == ("foliot", None)

    async with Database(database_url, OPTIONS) as database, asyncio.TaskGroup() as group:
        for client in range(CLIENTS):
            tenant = UUID(int=client + 1)
            group.create_task(as_tenant(database, tenant) if client % 2 else as_engine(database))


async def test_what_the_driver_sets_to_read_types_is_set_back(
    server: DatabaseFactory, database_url: str
) -> None:
    """It turns `jit` off and on again, each time on whatever connection it then has."""
    name = database_url.partition("@/")[2].partition("?")[0]
    async with connect(server.admin_url) as admin:
        await admin.execute(sql(f"alter role foliot in database {name} set jit = on"))
    arrays = sql("select $1::int[], $2::uuid[], $3::timestamptz[], $4::float8[], $5::bool[]")
    jit = sql("select pg_backend_pid(), current_setting('jit')")

    async def ask(database: Database) -> dict[int, str]:
        async with database.connection() as session:
            for _ in range(ROUNDS):
                await session.fetch(arrays, [1], [], [], [1.0], [True])
            return {pid: on for _ in range(ROUNDS) for pid, on in await session.fetch(jit)}

    async with Database(database_url, OPTIONS) as database:
        found = await asyncio.gather(*(ask(database) for _ in range(CLIENTS)))
    assert {on for each in found for on in each.values()} == {"on"}


async def test_the_arrays_of_every_statement_are_known_from_the_start(database_url: str) -> None:
    """Nothing is left that the driver would have to ask the server about later."""
    connection = await asyncpg.connect(database_url, statement_cache_size=0)
    try:
        async with connection.transaction():
            read = await connection.prepare(READ_ARRAYS)
            known = {column.type.oid for column in read.get_attributes()} | {TEXT_ARRAY}
            for statement in every_statement():
                prepared = await connection.prepare(statement.sql)
                types = [*prepared.get_parameters()]
                types += [column.type for column in prepared.get_attributes()]
                assert {one.oid for one in types if one.kind != "scalar"} <= known, statement.name
    finally:
        await connection.close()


async def test_a_line_that_is_cut_while_it_is_prepared_is_no_connection(database_url: str) -> None:
    """A pooler answers before it has a server: whether there is one shows with the first words."""

    async def by_itself(url: str) -> None:
        async with connect(url):
            pass

    async def in_a_pool(url: str) -> None:
        async with Database(url, OPTIONS):
            pass

    for opening in (by_itself, in_a_pool):
        async with NodeProxy(database_url) as proxy:
            proxy.cut_at(READ_ARRAYS.encode(), deliver=False)
            with pytest.raises(DatabaseUnreachable):
                await opening(proxy.url)
