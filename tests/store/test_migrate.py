"""Migrations on a real server: once each, all or nothing, whoever else is trying the same."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from foliot.runtime.clock import SystemClock
from foliot.store.connecting import connect
from foliot.store.database import Database
from foliot.store.errors import (
    CommitUnknown,
    DatabaseRefused,
    DatabaseUnreachable,
    MigrationBlocked,
    MigrationChanged,
    MigrationFailed,
    SchemaNewer,
)
from foliot.store.migrate import MIGRATION_LOCK, SchemaStatus, migrate, schema_status
from foliot.store.migration_files import Migration, packaged_migrations
from foliot.store.safety import missing_safety
from foliot.store.session import transaction
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.proxy import NodeProxy

CLOCK = SystemClock()
FIRST = packaged_migrations()[0]
NOTES = Migration(2, "notes", "create table foliot.notes (note text);\n")
COUNTED = Migration(3, "counted", "insert into foliot.notes values ('applied');\n")
PLAN = (FIRST, NOTES, COUNTED)
APPLIED = sql("select array_agg(version order by version) from foliot.schema_migrations")


class ActingClock(SystemClock):
    """Does something at its first sleep, and sleeps no longer than a moment."""

    def __init__(self, act: Callable[[], Awaitable[None]]) -> None:
        self._act = act
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        if not self.slept:
            await self._act()
        self.slept.append(seconds)
        await super().sleep(0)


async def versions(url: str) -> list[int] | None:
    async with connect(url) as session:
        result: list[int] | None = await session.fetch_value(APPLIED)
        return result


async def test_an_empty_database_is_brought_up_to_date(empty_database_url: str) -> None:
    names = tuple(entry.file for entry in PLAN)
    assert await schema_status(empty_database_url, PLAN) == SchemaStatus((), names)
    assert await migrate(empty_database_url, CLOCK, migrations=PLAN) == names
    assert await schema_status(empty_database_url, PLAN) == SchemaStatus(names, ())
    assert await migrate(empty_database_url, CLOCK, migrations=PLAN) == ()


async def test_what_is_remembered_of_a_migration(empty_database_url: str) -> None:
    await migrate(empty_database_url, CLOCK)
    async with connect(empty_database_url) as session:
        row = await session.fetch_row(sql("select * from foliot.schema_migrations order by 1"))
        age = await session.fetch_value(
            sql("select statement_timestamp() - max(applied_at) from foliot.schema_migrations")
        )
    assert row is not None
    assert (row["version"], row["name"], row["checksum"]) == (1, FIRST.name, FIRST.checksum)
    assert 0 <= age.total_seconds() < 60


async def test_the_role_gets_its_limits_in_this_database_alone(
    empty_database_url: str, server: DatabaseFactory
) -> None:
    async with connect(empty_database_url) as session:
        assert await missing_safety(session)
    await migrate(empty_database_url, CLOCK)
    async with connect(empty_database_url) as session:
        assert await missing_safety(session) == ()
        assert await session.fetch_value(sql("show lock_timeout")) == "1s"
    async with connect(await server.create_empty()) as elsewhere:
        assert await elsewhere.fetch_value(sql("show lock_timeout")) == "0"


async def test_what_migrating_changes_for_the_role_is_said_once(
    empty_database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = empty_database_url.partition("@/")[2].partition("?")[0]
    caplog.set_level(logging.INFO)
    await migrate(empty_database_url, CLOCK)
    said = [line for line in caplog.messages if line.startswith("set ")]
    assert f"set lock_timeout = 1000 for role foliot in database {name}" in said
    async with connect(empty_database_url) as session:
        defaults = "select setconfig from pg_db_role_setting s join pg_database d on d.oid ="
        defaults += " setdatabase where datname = current_database()"
        kept = await session.fetch_value(sql(defaults))
    assert {line.split()[1] for line in said} == {entry.partition("=")[0] for entry in kept}
    caplog.clear()
    await migrate(empty_database_url, CLOCK)
    assert not [line for line in caplog.messages if line.startswith("set ")]


async def test_a_role_without_rights_learns_whose_they_are(
    database_url: str, server: DatabaseFactory
) -> None:
    async with connect(server.admin_url) as admin:
        await admin.execute(sql("create role stranger login"))
    url = server.server.url(database_url.partition("@/")[2].partition("?")[0], "stranger")
    for attempt in (schema_status(url), migrate(url, CLOCK)):
        with pytest.raises(DatabaseRefused, match="connect as the role that owns the schema"):
            await attempt


@pytest.mark.direct
async def test_lost_limits_are_set_again_without_a_migration(
    database_url: str, server: DatabaseFactory
) -> None:
    async with connect(server.admin_url) as admin:
        name = database_url.partition("@/")[2].partition("?")[0]
        await admin.execute(sql(f"alter role foliot in database {name} set lock_timeout = '1h'"))
    assert await migrate(database_url, CLOCK) == ()
    async with connect(database_url) as session:
        assert await session.fetch_value(sql("show lock_timeout")) == "1s"


async def test_a_limit_the_platform_refuses_costs_only_itself(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limits = {"client_connection_check_interval": -5, "lock_timeout": 1000}
    monkeypatch.setattr("foliot.store.safety.LIMITS", limits)
    await migrate(empty_database_url, CLOCK)
    assert "client_connection_check_interval cannot be set here" in caplog.text
    async with connect(empty_database_url) as session:
        assert await session.fetch_value(sql("show lock_timeout")) == "1s"


@pytest.mark.parametrize("trial", range(3))
async def test_ten_nodes_at_once_apply_each_migration_once(
    empty_database_url: str, trial: int
) -> None:
    slow = Migration(2, "notes", "create table foliot.notes (note text); select pg_sleep(0.05);")
    plan = (FIRST, slow, COUNTED, Migration(4, "again", COUNTED.script + f"-- {trial}"))
    done = await asyncio.gather(
        *(migrate(empty_database_url, CLOCK, migrations=plan) for _ in range(10))
    )
    assert sorted(name for names in done for name in names) == [entry.file for entry in plan]
    async with connect(empty_database_url) as session:
        assert await session.fetch_value(sql("select count(*) from foliot.notes")) == 2
        assert await missing_safety(session) == ()


async def test_a_failing_migration_leaves_the_database_as_it_was(empty_database_url: str) -> None:
    broken = Migration(
        3,
        "broken",
        "create table foliot.more (a int);\n\ninsert into foliot.notes\n  selec 'x';\n",
    )
    with pytest.raises(MigrationFailed) as caught:
        await migrate(empty_database_url, CLOCK, migrations=(FIRST, NOTES, broken))
    assert str(caught.value) == (
        'migration 0003_broken.sql, line 4: syntax error at or near "selec"'
        " (the database is as it was)"
    )
    assert await versions(empty_database_url) == [1, 2]
    assert await migrate(empty_database_url, CLOCK, migrations=PLAN) == ("0003_counted.sql",)


async def test_a_migration_that_fails_late_is_undone_and_named(empty_database_url: str) -> None:
    late = Migration(2, "late", "create table foliot.notes (a int);\nselect 1 / 0;\n")
    with pytest.raises(MigrationFailed, match=r"0002_late\.sql: division by zero"):
        await migrate(empty_database_url, CLOCK, migrations=(FIRST, late))
    async with connect(empty_database_url) as session:
        assert await session.fetch_value(sql("select to_regclass('foliot.notes')")) is None


async def test_a_name_without_its_schema_is_refused(empty_database_url: str) -> None:
    """Otherwise a migration would land wherever some search_path points."""
    lost = Migration(2, "lost", "create table notes (note text);\n")
    with pytest.raises(MigrationFailed, match="no schema has been selected"):
        await migrate(empty_database_url, CLOCK, migrations=(FIRST, lost))


async def test_a_changed_migration_is_refused_by_name(empty_database_url: str) -> None:
    await migrate(empty_database_url, CLOCK, migrations=PLAN)
    changed = (FIRST, Migration(2, "notes", "select 'edited'"), COUNTED)
    for call in (migrate(empty_database_url, CLOCK, migrations=changed),
                 schema_status(empty_database_url, changed)):  # fmt: skip
        with pytest.raises(MigrationChanged, match=r"0002_notes\.sql"):
            await call


async def test_a_database_newer_than_the_code_is_refused(empty_database_url: str) -> None:
    await migrate(empty_database_url, CLOCK, migrations=PLAN)
    with pytest.raises(SchemaNewer):
        await migrate(empty_database_url, CLOCK, migrations=PLAN[:2])


async def test_a_table_in_use_is_waited_for_in_short_turns(empty_database_url: str) -> None:
    """A migration that queued for the lock would block every reader that comes after it."""
    url = empty_database_url
    await migrate(url, CLOCK, migrations=PLAN[:2])
    change = Migration(3, "change", "alter table foliot.notes add column more int;")
    async with Database(url) as database:
        holder = database.transaction()
        session = await holder.__aenter__()
        await session.execute(sql("set local idle_in_transaction_session_timeout = 0"))
        await session.fetch(sql("select * from foliot.notes"))

        async def let_go() -> None:
            assert await database.fetch(sql("select * from foliot.notes")) == []
            await holder.__aexit__(None, None, None)

        clock = ActingClock(let_go)
        assert await migrate(url, clock, migrations=(*PLAN[:2], change)) == ("0003_change.sql",)
    assert clock.slept == [0.2]


async def test_patience_with_a_lock_ends_and_says_so(empty_database_url: str) -> None:
    await migrate(empty_database_url, CLOCK, migrations=PLAN[:2])
    change = (*PLAN[:2], Migration(3, "change", "alter table foliot.notes add column more int;"))
    async with Database(empty_database_url) as database, database.transaction() as session:
        await session.execute(sql("set local idle_in_transaction_session_timeout = 0"))
        await session.fetch(sql("select * from foliot.notes"))
        with pytest.raises(MigrationBlocked, match="a lock could not be had in time"):
            await migrate(empty_database_url, CLOCK, migrations=change, patience_seconds=0.1)
    assert await versions(empty_database_url) == [1, 2]


async def test_even_the_first_migration_waits_in_short_turns(empty_database_url: str) -> None:
    """The role has no limits of its own yet."""
    async with connect(empty_database_url) as other, transaction(other):
        await other.execute(sql(f"select pg_advisory_xact_lock({MIGRATION_LOCK})"))
        async with asyncio.timeout(5):
            with pytest.raises(MigrationBlocked):
                await migrate(empty_database_url, CLOCK, patience_seconds=0.1)


KILLED = """
import asyncio, sys
from foliot.runtime.clock import SystemClock
from foliot.store.migrate import migrate
from foliot.store.migration_files import Migration, packaged_migrations

slow = Migration(2, "slow", "create table foliot.notes (a int); select pg_sleep(60);")
asyncio.run(migrate(sys.argv[1], SystemClock(), migrations=(packaged_migrations()[0], slow)))
"""
SLEEPING = sql(
    "select count(*) from pg_stat_activity"
    " where datname = current_database() and wait_event = 'PgSleep'"
)


async def test_a_node_killed_while_migrating_leaves_nothing_behind(empty_database_url: str) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, empty_database_url)
    async with Database(empty_database_url) as database:
        while not await database.fetch_value(SLEEPING):
            pass
        process.kill()
        await process.wait()
        # The server asks every second whether its client is still there.
        assert await migrate(empty_database_url, CLOCK, migrations=PLAN) == (
            "0002_notes.sql",
            "0003_counted.sql",
        )


async def test_a_backend_killed_while_migrating_leaves_nothing_behind(
    empty_database_url: str,
) -> None:
    suicide = Migration(2, "late", "create table foliot.notes (a int);"
                        " select pg_terminate_backend(pg_backend_pid());")  # fmt: skip
    with pytest.raises(DatabaseUnreachable):
        await migrate(empty_database_url, CLOCK, migrations=(FIRST, suicide))
    assert await migrate(empty_database_url, CLOCK, migrations=PLAN) == (
        "0002_notes.sql",
        "0003_counted.sql",
    )


async def test_an_unknown_commit_of_a_migration_is_settled_by_asking_again(
    empty_database_url: str,
) -> None:
    async with NodeProxy(empty_database_url) as proxy:
        proxy.lose_next_commit_answer()
        with pytest.raises(CommitUnknown):
            await migrate(proxy.url, CLOCK, migrations=PLAN)
        assert await migrate(proxy.url, CLOCK, migrations=PLAN) == (
            "0002_notes.sql",
            "0003_counted.sql",
        )


async def test_a_role_that_may_not_create_a_schema_uses_the_one_made_for_it(
    empty_database_url: str, server: DatabaseFactory
) -> None:
    name = empty_database_url.partition("@/")[2].partition("?")[0]
    async with connect(server.admin_url) as admin:
        await admin.execute(sql(f"alter database {name} owner to postgres"))
    with pytest.raises(MigrationFailed, match="permission denied for database"):
        await migrate(empty_database_url, CLOCK, migrations=(FIRST,))
    async with connect(server.server.url(name, "postgres")) as admin:
        await admin.execute(sql("create schema foliot authorization foliot"))
    assert await migrate(empty_database_url, CLOCK, migrations=(FIRST,)) == (FIRST.file,)


async def test_a_role_that_may_not_create_the_tenants_role_learns_what_to_ask_for(
    empty_database_url: str, server: DatabaseFactory
) -> None:
    name = empty_database_url.partition("@/")[2].partition("?")[0]
    async with connect(server.admin_url) as admin:
        await admin.execute(sql("create role plain login"))
        await admin.execute(sql(f"alter database {name} owner to plain"))
    url = server.server.url(name, "plain")
    with pytest.raises(MigrationFailed) as caught:
        await migrate(url, CLOCK)
    message, _, order = str(caught.value).partition("; as an administrator: ")
    assert message == (
        "migration 0002_tenants.sql: this role may not create or use the role foliot_tenant"
        " (the database is as it was)"
    )
    assert order == "create role foliot_tenant nologin; grant foliot_tenant to plain"
    async with connect(server.admin_url) as admin:
        # The role itself is there already on this server.
        await admin.execute(sql(order.partition("; ")[2]))
    assert packaged_migrations()[-1].file in await migrate(url, CLOCK)


async def test_a_role_that_may_create_roles_makes_the_tenants_role_its_own() -> None:
    """From PostgreSQL 16 on the creator of a role may not become it without a grant."""
    other = DatabaseFactory()
    await other.server.start()
    try:
        async with connect(other.admin_url) as admin:
            await admin.execute(sql("create role foliot login createrole"))
            await admin.execute(sql("create database fresh owner foliot"))
        await migrate(other.server.url("fresh"), CLOCK)
        async with (
            Database(other.server.url("fresh")) as database,
            database.transaction(UUID(int=1)) as session,
        ):
            assert await session.fetch_value(sql("select current_user")) == "foliot_tenant"
    finally:
        await other.stop()
