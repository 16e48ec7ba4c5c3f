"""A pool, short transactions, and what happens when a statement is refused."""

import asyncio
import logging
import math
import time
from datetime import UTC, datetime, timedelta

import pytest

from foliot.store.connecting import ConnectionOptions, connect
from foliot.store.database import Database
from foliot.store.errors import (
    CommitUnknown,
    DatabaseRefused,
    DatabaseUnreachable,
    StatementFailed,
    TransactionConflict,
)
from foliot.store.readiness import read_readiness
from foliot.testing.database import DatabaseFactory, sql

INSERT = sql("insert into foliot.notes values ($1)")
COUNT = sql("select count(*) from foliot.notes")


@pytest.fixture
async def notes(database: Database) -> Database:
    await database.execute(sql("create table foliot.notes (note text primary key)"))
    return database


async def test_a_transaction_is_kept_as_a_whole(notes: Database) -> None:
    async with notes.transaction() as session:
        await session.execute(INSERT, "one")
        await session.execute(INSERT, "two")
        assert await notes.fetch_value(COUNT) == 0
    assert await notes.fetch_value(COUNT) == 2


async def test_a_transaction_that_raises_leaves_nothing(
    notes: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with notes.transaction() as session:
            await session.execute(INSERT, "one")
            raise KeyError

    with pytest.raises(KeyError):
        await work()
    assert await notes.fetch_value(COUNT) == 0
    assert not caplog.messages, "the pool found nothing to clean up"


async def test_a_cancelled_transaction_leaves_nothing_and_its_connection_is_free(
    database_url: str,
) -> None:
    async with Database(database_url, ConnectionOptions(max_connections=1)) as database:
        await database.execute(sql("create table foliot.notes (note text primary key)"))
        started = asyncio.Event()

        async def work() -> None:
            async with database.transaction() as session:
                await session.execute(INSERT, "one")
                started.set()
                await session.execute(sql("select pg_sleep(4)"))

        task = asyncio.get_running_loop().create_task(work())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await database.fetch_value(COUNT) == 0


async def test_a_swallowed_failure_does_not_pass_for_a_commit(notes: Database) -> None:
    """The server answers COMMIT of a failed transaction with ROLLBACK and no error."""

    async def work() -> None:
        async with notes.transaction() as session:
            await session.execute(INSERT, "one")
            with pytest.raises(StatementFailed, match="division by zero"):
                await session.execute(sql("select 1 / 0"))

    with pytest.raises(StatementFailed, match="had already failed"):
        await work()
    assert await notes.fetch_value(COUNT) == 0


async def test_each_statement_outside_a_transaction_is_kept_by_itself(notes: Database) -> None:
    async with notes.connection() as session:
        assert await session.execute(INSERT, "one") == 1
        with pytest.raises(StatementFailed):
            await session.execute(sql("select 1 / 0"))
        assert await session.execute(sql("delete from foliot.notes where note = 'two'")) == 0
    assert await notes.fetch_value(COUNT) == 1


async def test_a_violated_constraint_is_an_answer_to_branch_on(notes: Database) -> None:
    await notes.execute(INSERT, "one")
    with pytest.raises(StatementFailed) as caught:
        await notes.execute(INSERT, "one")
    assert (caught.value.sqlstate, caught.value.constraint) == ("23505", "notes_pkey")
    assert "one" not in str(caught.value)


async def test_a_deadlock_undoes_one_transaction_and_says_it_may_be_tried_again(
    notes: Database,
) -> None:
    await notes.execute(INSERT, "a")
    await notes.execute(INSERT, "b")
    lock = sql("select 1 from foliot.notes where note = $1 for update")
    both_hold_one = asyncio.Barrier(2)

    async def work(first: str, second: str) -> str:
        try:
            async with notes.transaction() as session:
                await session.execute(sql("set local lock_timeout = '4s'"))
                await session.execute(lock, first)
                await both_hold_one.wait()
                await session.execute(lock, second)
        except TransactionConflict as conflict:
            return conflict.sqlstate
        return "done"

    outcomes = await asyncio.gather(work("a", "b"), work("b", "a"))
    assert sorted(outcomes) == ["40P01", "done"]


async def test_rows_changed_meanwhile_are_a_conflict(notes: Database) -> None:
    await notes.execute(INSERT, "one")

    async def work() -> None:
        async with notes.transaction() as session:
            await session.execute(sql("set transaction isolation level repeatable read"))
            await session.fetch(COUNT)
            await notes.execute(sql("update foliot.notes set note = 'two'"))
            await session.execute(sql("update foliot.notes set note = 'three'"))

    with pytest.raises(TransactionConflict, match="40001"):
        await work()


async def test_json_is_python_values_both_ways(database: Database) -> None:
    echo = sql("select $1::jsonb")
    values: list[object] = [{"a": [1, 2.5, None, True]}, [], "ü\U0001f570", 0, {"deep": {"er": []}}]
    for value in values:
        assert await database.fetch_value(echo, value) == value
    assert await database.fetch_value(sql("select $1::jsonb is null"), None) is True


async def test_json_without_a_meaning_is_refused_before_it_is_sent(database: Database) -> None:
    for value in (math.nan, math.inf):
        with pytest.raises(StatementFailed, match="an argument does not fit"):
            await database.fetch_value(sql("select $1::jsonb"), {"value": value})


async def test_times_come_back_aware_and_in_utc(database: Database) -> None:
    told = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    for zone in ("Europe/Berlin", "Pacific/Apia"):
        async with database.transaction() as session:
            await session.execute(sql(f"set local timezone = '{zone}'"))
            got = await session.fetch_value(sql("select $1::timestamptz"), told)
        assert got == told
        assert got.utcoffset() == timedelta(0)


@pytest.mark.direct
async def test_a_session_leaves_nothing_behind_for_the_next(database_url: str) -> None:
    """One connection, lent twice: what a transaction set is over, and nothing is sent between."""
    last_words = sql("select query from pg_stat_activity where pid = $1")
    async with (
        Database(database_url, ConnectionOptions(max_connections=1)) as database,
        connect(database_url) as watcher,
    ):
        async with database.transaction() as session:
            await session.execute(sql("set local work_mem = '123kB'"))
            pid = await session.fetch_value(sql("select pg_backend_pid()"))
        assert await watcher.fetch_value(last_words, pid) == "commit"
        async with database.connection() as session:
            row = await session.fetch_row(
                sql("select pg_backend_pid() as pid, current_setting('work_mem') as work_mem")
            )
        assert row is not None
        assert row["pid"] == pid
        assert row["work_mem"] != "123kB"


@pytest.mark.direct
@pytest.mark.parametrize(("prepare", "named"), [(True, 1), (False, 0)])
async def test_without_preparing_no_statement_stays_in_the_server(
    database_url: str, prepare: bool, named: int
) -> None:
    options = ConnectionOptions(max_connections=1, prepare=prepare)
    async with Database(database_url, options) as database, database.connection() as session:
        for _ in range(3):
            await session.fetch(sql("select 'kept?' where $1::int = 1"), 1)
        kept = await session.fetch_value(
            sql("select count(*) from pg_prepared_statements where statement like '%kept?%' and "
                "statement not like '%pg_prepared_statements%'")
        )  # fmt: skip
    assert kept == named


async def test_a_pool_with_no_connection_left_says_so_in_time(database_url: str) -> None:
    options = ConnectionOptions(max_connections=1, acquire_seconds=0.05)
    async with Database(database_url, options) as database, database.connection():
        with pytest.raises(DatabaseUnreachable, match="no answer in time"):
            await database.fetch_value(sql("select 1"))


async def test_a_database_that_is_not_open_is_unreachable(database_url: str) -> None:
    database = Database(database_url)
    await database.close()
    with pytest.raises(DatabaseUnreachable, match="it is not open"):
        await database.fetch_value(sql("select 1"))


async def test_closing_does_not_wait_for_ever(database_url: str) -> None:
    database = Database(database_url)
    await database.open()

    async def work() -> None:
        async with database.transaction() as session:
            await database.close(within_seconds=0.05)
            await session.fetch_value(sql("select 1"))

    began = time.monotonic()
    with pytest.raises(DatabaseUnreachable, match="the connection was closed"):
        await work()
    assert time.monotonic() - began < 1.5


async def test_a_wrong_name_is_refused_at_once(server: DatabaseFactory) -> None:
    with pytest.raises(DatabaseRefused, match="create the database first"):
        await Database(server.server.url("nowhere")).open()
    with pytest.raises(DatabaseRefused, match="check the user name"):
        await Database(server.server.url("postgres", "nobody_we_know")).open()


async def test_a_session_without_the_limits_is_warned_of(
    empty_database_url: str, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with Database(database_url):
        assert not caplog.messages
    async with Database(empty_database_url):
        (said,) = caplog.messages
    assert "idle_in_transaction_session_timeout is off, should be at most 2000" in said
    assert "foliot db migrate" in said


@pytest.mark.direct
async def test_stricter_limits_of_the_operator_are_kept_and_not_warned_of(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    change = "alter role foliot in database %I set statement_timeout = 3000"
    async with Database(database_url) as database:
        await database.execute(
            sql(f"do $$ begin execute format('{change}', current_database()); end $$")
        )
    caplog.set_level(logging.WARNING)
    async with Database(database_url) as database:
        assert await database.fetch_value(sql("show statement_timeout")) == "3s"
    assert not caplog.messages


async def test_readiness_tells_the_databases_clock_and_level(
    database: Database, empty_database_url: str
) -> None:
    told = datetime(2030, 1, 1, tzinfo=UTC)
    assert (await read_readiness(database, told)).now == told
    real = await read_readiness(database)
    assert real.ready
    assert real.level == real.level_needed
    assert real.now is not None
    assert abs(real.now - datetime.now(UTC)) < timedelta(seconds=30)
    async with Database(empty_database_url) as empty:
        assert not (await read_readiness(empty)).ready


async def test_the_application_is_named_to_the_server(database_url: str) -> None:
    async with connect(
        database_url, ConnectionOptions(application_name="foliot worker")
    ) as session:
        assert await session.fetch_value(sql("show application_name")) == "foliot worker"


async def test_a_session_is_over_with_its_block(database: Database) -> None:
    async with database.connection() as session:
        pass
    with pytest.raises(CommitUnknown, match="the connection was closed"):
        await session.fetch_value(sql("select 1"))
