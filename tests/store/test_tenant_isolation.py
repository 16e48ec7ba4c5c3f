"""The second wall: as a tenant nobody sees, adds, changes or removes a row of another, anywhere."""

# ruff: noqa: S608 - the same question is put to every table, whose names come from the catalog

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import pytest
import pytest_asyncio

from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.errors import StatementFailed
from foliot.store.session import Session
from foliot.testing.database import sql

A, B = UUID(int=0xA), UUID(int=0xB)
FORBIDDEN = "42501"
WHO = sql("select array[current_user, current_setting('foliot.tenant_id', true)]::text[]")

OWNED = sql("""
select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
 where c.relnamespace = 'foliot'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
   and a.attname = 'tenant_id' order by 1
""")
NEEDED = sql("""
select column_name::text as name, udt_name::text as type from information_schema.columns
 where table_schema = 'foliot' and table_name = $1 and is_nullable = 'NO' and column_default is null
   and is_identity = 'NO' and column_name <> 'tenant_id' order by ordinal_position
""")
# Where a constraint asks for more than a type.
CHOSEN = {
    "overlap_policy": "'SKIP'",
    "failure_policy": "'CONTINUE'",
    "dead_letters.reason": "'EXHAUSTED'",
    "skips.reason": "'MISFIRE'",
    "jobs.status": "'ACTIVE'",
    "dags.status": "'ACTIVE'",
    "workers.status": "'ACTIVE'",
    "executions.status": "'PENDING'",
    "signing_keys.number": "(random() * 1000000000)::integer",
}
# Where a tenant may change some columns only.
CHANGEABLE = {
    "api_keys": "name",
    "dead_letters": "discard_reason",
    "deliveries": "given_up_at",
    "secrets": "version",
    "signing_keys": "ends_at",
}
BY_TYPE = {
    "uuid": "gen_random_uuid()",
    "text": "gen_random_uuid()::text",
    "timestamptz": "statement_timestamp()",
    "jsonb": "'{}'",
    "bytea": "gen_random_uuid()::text::bytea",
    "bool": "false",
    "_text": "'{}'",
    "int2": "1",
    "int4": "1",
    "int8": "1",
    "float8": "1",
}


@dataclass(frozen=True)
class Table:
    name: str
    insert: str  # with $1 for the tenant

    def __str__(self) -> str:
        return f"foliot.{self.name}"


async def read_table(database: Database, name: str) -> Table:
    columns = {
        row["name"]: CHOSEN.get(row["name"])
        or CHOSEN.get(f"{name}.{row['name']}")
        or BY_TYPE[row["type"]]
        for row in await database.fetch(NEEDED, name)
    }
    names, values = ", ".join(columns), ", ".join(columns.values())
    return Table(
        name, f"insert into foliot.{name} (tenant_id, {names}) values ($1::uuid, {values})"
    )


@pytest_asyncio.fixture
async def tables(database: Database) -> AsyncIterator[list[Table]]:
    """Every table that belongs to tenants, with two rows of A and three of B in each."""
    found = [await read_table(database, row[0]) for row in await database.fetch(OWNED)]
    assert len(found) > 10
    for table in found:
        for tenant, count in ((A, 2), (B, 3)):
            for _ in range(count):
                await database.execute(sql(table.insert), tenant)
    yield found
    for table in found:
        owned = f"select tenant_id, count(*) from {table} where tenant_id is not null group by 1"
        counts = await database.fetch(sql(owned))
        assert dict(map(tuple, counts)) == {A: 2, B: 3}, f"the owner sees all of {table}"


async def attempt(session: Session, query: str, *arguments: object) -> int | str | None:
    """How many rows a statement touched, or what it was refused with; either way undone."""
    await session.execute(sql("savepoint before"))
    try:
        return await session.execute(sql(query), *arguments)
    except StatementFailed as failure:
        return failure.sqlstate
    finally:
        await session.execute(sql("rollback to savepoint before"))


async def test_every_table_of_tenants_has_a_policy_for_sight_and_change(database: Database) -> None:
    query = """
        select c.relname::text as name, c.relrowsecurity as enabled,
               coalesce((select bool_or(p.polqual is not null and p.polwithcheck is not null
                                        and p.polcmd = '*' and p.polpermissive)
                           from pg_policy p where p.polrelid = c.oid), false) as complete
          from pg_class c
         where c.relnamespace = 'foliot'::regnamespace and c.relkind in ('r', 'p')
           and not c.relispartition
           and (c.relname = 'tenants' or exists (select from pg_attribute a
                                   where a.attrelid = c.oid and a.attname = 'tenant_id'))
    """
    rows = await database.fetch(sql(query))
    assert len(rows) > 10
    assert [row["name"] for row in rows if not (row["enabled"] and row["complete"])] == []


async def test_what_belongs_to_no_tenant_is_closed_or_only_read(database: Database) -> None:
    query = """
        select c.relname::text as name, p.privilege from pg_class c,
               unnest(array['select', 'insert', 'update', 'delete', 'truncate']) p(privilege)
         where c.relnamespace = 'foliot'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
           and not exists (select from pg_attribute a
                            where a.attrelid = c.oid and a.attname = 'tenant_id')
           and has_table_privilege('foliot_tenant', c.oid, p.privilege)
    """
    found = {(row["name"], row["privilege"]) for row in await database.fetch(sql(query))}
    assert found == {("queues", "select"), ("tenants", "select")}


async def test_a_partition_is_reached_only_through_its_parent(
    database: Database, tables: list[Table]
) -> None:
    assert "attempts" in [table.name for table in tables]
    query = """
        select 'foliot.' || relname as name, relrowsecurity as enabled,
               has_table_privilege('foliot_tenant', inhrelid, 'select, insert, update, delete')
                 as granted
          from pg_inherits join pg_class on oid = inhrelid
         where inhparent = 'foliot.attempts'::regclass
    """
    rows = await database.fetch(sql(query))
    assert len(rows) > 2
    assert all(row["enabled"] and not row["granted"] for row in rows)
    async with database.transaction(A) as session:
        assert await session.fetch_value(sql("select count(*) from foliot.attempts")) == 2
        for row in rows:
            assert await attempt(session, f"select from {row['name']}") == FORBIDDEN


async def test_a_tenant_sees_its_own_rows_alone(database: Database, tables: list[Table]) -> None:
    for tenant, count in ((A, 2), (B, 3)):
        async with database.transaction(tenant) as session:
            for table in tables:
                rows = await session.fetch(sql(f"select tenant_id from {table}"))
                assert [row["tenant_id"] for row in rows] == [tenant] * count, table


async def test_without_a_tenant_there_are_no_rows_and_none_can_be_added(
    database: Database, tables: list[Table]
) -> None:
    async with database.transaction() as session:
        await session.execute(sql("set local role foliot_tenant"))
        for table in tables:
            assert await session.fetch(sql(f"select tenant_id from {table}")) == [], table
            for tenant in (A, None):
                assert await attempt(session, table.insert, tenant) == FORBIDDEN, table
        assert await session.fetch(sql("select id from foliot.tenants")) == []


async def test_a_tenant_adds_rows_for_itself_alone(database: Database, tables: list[Table]) -> None:
    added = set()
    async with database.transaction(A) as session:
        for table in tables:
            assert await attempt(session, table.insert, B) == FORBIDDEN, table
            if await attempt(session, table.insert, A) == 1:
                added.add(table.name)
    assert {table.name for table in tables} - added == {
        *("dead_letters", "execution_logs", "job_parents")
    }


async def test_a_tenant_changes_and_removes_its_own_rows_at_the_most(
    database: Database, tables: list[Table]
) -> None:
    changed: set[str] = set()
    removed: set[str] = set()
    async with database.transaction(A) as session:
        for table in tables:
            column = CHANGEABLE.get(table.name, "tenant_id")
            change = f"update {table} set {column} = {column}"
            for query, done in ((change, changed), (f"delete from {table}", removed)):
                outcome = await attempt(session, query)
                assert outcome in {2, FORBIDDEN}, (query, outcome)
                if outcome == 2:
                    done.add(table.name)
                of_other = f"{query} where tenant_id = '{B}'"
                assert await attempt(session, of_other) in {0, FORBIDDEN}, query
            give_away = f"update {table} set tenant_id = '{B}'"
            assert await attempt(session, give_away) == FORBIDDEN, table
    assert changed == {
        *("api_keys", "calendars", "dags", "dead_letters", "executions", "idempotency_keys"),
        *("deliveries", "job_names", "jobs", "secrets", "signing_keys", "workers"),
    }
    assert removed == {"calendars", "executions", "job_names", "secrets", "signing_keys"}


async def test_a_tenant_sees_its_own_entry_among_the_tenants(database: Database) -> None:
    columns = "id, name, tier, weight, created_at"
    add = f"insert into foliot.tenants ({columns}) values ($1, $2, 'free', 1, $3)"
    now = await database.fetch_value(sql("select statement_timestamp()"))
    for tenant, name in ((A, "a"), (B, "b")):
        await database.execute(sql(add), tenant, name, now)
    async with database.transaction(A) as session:
        assert [row[0] for row in await session.fetch(sql("select name from foliot.tenants"))] == [
            "a"
        ]
        assert await attempt(session, "update foliot.tenants set weight = 99") == FORBIDDEN
        assert await attempt(session, add, UUID(int=3), "c", now) == FORBIDDEN


@pytest.mark.parametrize(
    "query",
    [
        "select ciphertext from foliot.secrets",
        "select nonce from foliot.secrets",
        "select * from foliot.secrets",
        "update foliot.secrets set version = 1 returning ciphertext",
        "insert into foliot.secrets select * from foliot.secrets",
        "update foliot.secrets set name = 'OTHER'",
        "select ciphertext from foliot.signing_keys",
        "update foliot.signing_keys set number = 9",
        "update foliot.signing_keys set ends_at = null returning nonce",
        "update foliot.deliveries set attempts = '[]'",
        "update foliot.deliveries set claim_number = 0",
        "delete from foliot.deliveries",
        "select hash from foliot.api_keys",
        "update foliot.api_keys set hash = '\\x00'",
        "select started from foliot.workers",
        "update foliot.audit_log set actor = 'somebody else'",
        "truncate foliot.calendars",
    ],
)
async def test_what_not_even_its_tenant_may_do(
    database: Database, tables: list[Table], query: str
) -> None:
    assert tables
    async with database.transaction(A) as session:
        assert await attempt(session, query) == FORBIDDEN


async def test_a_worker_for_everyone_is_seen_by_every_tenant_and_changed_by_none(
    database: Database,
) -> None:
    worker = await read_table(database, "workers")
    await database.execute(sql(worker.insert), None)
    async with database.transaction(A) as session:
        assert await attempt(session, "select id from foliot.workers") == 1
        assert await attempt(session, "update foliot.workers set capacity = 0") == 0
        assert await attempt(session, worker.insert, None) == FORBIDDEN
    async with database.transaction() as session:
        await session.execute(sql("set local role foliot_tenant"))
        assert await attempt(session, "select id from foliot.workers") == 0


async def test_the_next_user_of_the_connection_is_the_engine_again(database_url: str) -> None:
    async with Database(database_url, ConnectionOptions(max_connections=1)) as database:

        async def fail() -> None:
            async with database.transaction(A) as session:
                await session.execute(sql("select 1 / 0"))

        for _ in range(2):
            async with database.transaction(A) as session:
                assert await session.fetch_value(WHO) == ["foliot_tenant", str(A)]
            user, tenant = await database.fetch_value(WHO)
            assert (user, tenant or "") == ("foliot", "")
            with pytest.raises(StatementFailed, match="division by zero"):
                await fail()
            user, tenant = await database.fetch_value(WHO)
            assert (user, tenant or "") == ("foliot", "")
            async with database.transaction() as session:
                assert (await session.fetch_value(WHO))[0] == "foliot"


async def test_a_prepared_statement_forgets_for_whom_it_was_planned(database_url: str) -> None:
    """One connection, one statement: the engine, A and B each see what is theirs."""
    count = sql("select count(*) from foliot.calendars")
    async with Database(database_url, ConnectionOptions(max_connections=1)) as database:
        calendars = await read_table(database, "calendars")
        for tenant in (A, B, B):
            await database.execute(sql(calendars.insert), tenant)
        for _ in range(7):
            assert await database.fetch_value(count) == 3
            for tenant, seen in ((A, 1), (B, 2)):
                async with database.transaction(tenant) as session:
                    assert await session.fetch_value(count) == seen
