"""Functions on a real server follow their files: created, changed, gone, all or none."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from foliot.runtime.clock import SystemClock
from foliot.store.connecting import connect
from foliot.store.errors import InvalidMigrations, MigrationFailed, SchemaNewer
from foliot.store.function_files import StoredFunction, packaged_functions, read_functions
from foliot.store.migrate import migrate
from foliot.store.migration_files import Migration, packaged_migrations
from foliot.store.session import Session
from foliot.testing.database import sql

CLOCK = SystemClock()
FIRST = (packaged_migrations()[0],)
HEADER = "-- purpose: p\n-- caller: c\n-- transition: none\n-- fence: none\n-- index: none\n"
NAMES = sql(
    "select coalesce(array_agg(proname::text order by proname), '{}') from pg_proc"
    " where pronamespace = 'foliot'::regnamespace"
)
RECORDED = sql("select coalesce(array_agg(name order by name), '{}') from foliot.schema_functions")


def function(name: str, arguments: str, returns: str, body: str) -> StoredFunction:
    script = (
        f"{HEADER}create or replace function foliot.{name}({arguments})\nreturns {returns}\n"
        f"language sql\nas $$\n{body}\n$$;\n"
    )
    return StoredFunction(name, script)


ONE = function("one", "", "integer", "select 1")
TWO = function("two", "", "integer", "select foliot.one() + foliot.zero() + 1")
ZERO = function("zero", "", "integer", "select 0")


async def follow(url: str, *functions: StoredFunction) -> tuple[str, ...]:
    return await migrate(url, CLOCK, migrations=FIRST, functions=functions)


async def value(url: str, query: str) -> object:
    async with connect(url) as session:
        return await session.fetch_value(sql(query))


async def names(url: str) -> Sequence[str]:
    """The functions that are there, which are the ones remembered."""
    async with connect(url) as session:
        there: list[str] = await session.fetch_value(NAMES)
        assert there == await session.fetch_value(RECORDED)
        return there


async def test_functions_are_created_in_any_order(empty_database_url: str) -> None:
    files = await follow(empty_database_url, TWO, ONE, ZERO)
    assert files[1:] == ("functions/two.sql", "functions/one.sql", "functions/zero.sql")
    assert await value(empty_database_url, "select foliot.two()") == 2
    assert await follow(empty_database_url, TWO, ONE, ZERO) == ()


async def test_a_changed_body_is_replaced_and_the_function_stays_the_same(
    empty_database_url: str,
) -> None:
    await follow(empty_database_url, ONE, ZERO)
    before = await value(empty_database_url, "select 'foliot.one'::regproc::oid")
    eleven = function("one", "", "integer", "select 11")
    assert await follow(empty_database_url, eleven, ZERO) == ("functions/one.sql",)
    assert await value(empty_database_url, "select foliot.one()") == 11
    assert await value(empty_database_url, "select 'foliot.one'::regproc::oid") == before


@pytest.mark.parametrize(
    ("arguments", "returns"),
    [("p_more integer default 5", "integer"), ("", "bigint"), ("", "table (a integer)")],
)
async def test_a_changed_signature_leaves_no_overload_behind(
    empty_database_url: str, arguments: str, returns: str
) -> None:
    await follow(empty_database_url, ONE)
    await follow(empty_database_url, function("one", arguments, returns, "select 7"))
    assert await value(empty_database_url, "select foliot.one()") == 7
    assert await names(empty_database_url) == ["one"]


async def test_a_renamed_argument_is_a_changed_signature(empty_database_url: str) -> None:
    await follow(empty_database_url, function("one", "p_a integer", "integer", "select p_a"))
    await follow(empty_database_url, function("one", "p_b integer", "integer", "select p_b"))
    assert await value(empty_database_url, "select foliot.one(p_b => 3)") == 3


async def test_a_function_without_a_file_is_dropped(empty_database_url: str) -> None:
    await follow(empty_database_url, ONE, ZERO)
    await follow(empty_database_url, ONE)
    assert await names(empty_database_url) == ["one"]


async def test_a_function_made_by_hand_gives_way(empty_database_url: str) -> None:
    await migrate(empty_database_url, CLOCK, migrations=FIRST)
    async with connect(empty_database_url) as session:
        await session.execute(
            sql("create function foliot.one(text) returns text language sql return $1")
        )
    await follow(empty_database_url, ONE)
    assert await names(empty_database_url) == ["one"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (function("two", "", "integer", "selec 1"), r"two\.sql, line 10: syntax error at or near"),
        (function("two", "", "integer", "select foliot.nothing()"), r"two\.sql, line 10: function"),
        (function("two", "", "foliot.unknown", "select 1"), r"two\.sql: type "),
        (
            StoredFunction(
                "two",
                "create or replace function foliot.two() returns void\nlanguage plpgsql as $$\n"
                "begin\n  perform 1;\n  retrn;\nend $$;\n",
            ),
            r"two\.sql, line 5: syntax error at or near",
        ),
    ],
    ids=["syntax", "unknown function", "unknown type", "plpgsql"],
)
async def test_a_broken_function_is_named_and_the_database_stays_as_it_was(
    empty_database_url: str, broken: StoredFunction, message: str
) -> None:
    await follow(empty_database_url, ONE, ZERO)
    with pytest.raises(MigrationFailed, match=r"^migration functions/" + message) as caught:
        await follow(empty_database_url, function("one", "", "text", "select '1'"), broken)
    assert str(caught.value).partition(" (the database is as it was)")[1]
    assert await names(empty_database_url) == ["one", "zero"]
    assert await value(empty_database_url, "select foliot.one()") == 1


async def test_a_function_in_use_is_not_torn_out(empty_database_url: str) -> None:
    await follow(empty_database_url, ONE)
    async with connect(empty_database_url) as session:
        await session.execute(sql("create view foliot.ones as select foliot.one()"))
    with pytest.raises(MigrationFailed, match=r"functions/one\.sql: cannot drop function") as found:
        await follow(empty_database_url, ZERO)
    assert found.value.hint is not None
    assert await names(empty_database_url) == ["one"]


@pytest.mark.parametrize("trial", range(3))
async def test_ten_nodes_at_once_create_each_function_once(
    empty_database_url: str, trial: int
) -> None:
    await follow(empty_database_url, function("one", "p_trial integer", "integer", "select 1"))
    wanted = (TWO, ONE, function("zero", "", "integer", f"select 0 * {trial}"))
    done = await asyncio.gather(*(follow(empty_database_url, *wanted) for _ in range(10)))
    files = sorted(file for files in done for file in files)
    assert files == ["functions/one.sql", "functions/two.sql", "functions/zero.sql"]
    assert await value(empty_database_url, "select foliot.two()") == 2


async def test_a_call_survives_a_replacement(empty_database_url: str) -> None:
    """A node's prepared statement goes on with the new body, and with a new signature that fits."""
    await follow(empty_database_url, ONE)
    call = sql("select foliot.one()::text")
    async with connect(empty_database_url) as session:
        assert await session.fetch_value(call) == "1"
        await follow(empty_database_url, function("one", "", "integer", "select 2"))
        assert await session.fetch_value(call) == "2"
        await follow(empty_database_url, function("one", "p integer default 3", "text", "select p"))
        assert await session.fetch_value(call) == "3"


async def test_an_older_foliot_does_not_replace_the_functions_of_a_newer_one(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the newer one came between the older one's look and its lock."""
    newer = Migration(2, "newer", "create table foliot.notes (note text);")
    await follow(empty_database_url, ONE)

    async def newer_comes(_: Session) -> tuple[()]:
        monkeypatch.undo()
        await migrate(empty_database_url, CLOCK, migrations=(*FIRST, newer), functions=(ONE, ZERO))
        return ()

    monkeypatch.setattr("foliot.store.migrate.read_installed", newer_comes)
    with pytest.raises(SchemaNewer):
        await follow(empty_database_url, function("one", "", "integer", "select 0"))
    assert await names(empty_database_url) == ["one", "zero"]
    assert await value(empty_database_url, "select foliot.one()") == 1


async def test_a_migrated_database_has_every_packaged_function(database_url: str) -> None:
    async with connect(database_url) as session:
        recorded = await session.fetch_value(RECORDED)
    assert recorded == [entry.name for entry in packaged_functions()]


@pytest.mark.parametrize(
    "script",
    [
        "create or replace function foliot.other() returns int language sql return 1;",
        "create or replace function one() returns int language sql return 1;",
        "create or replace function foliot.one() returns int language sql return 1;\n" * 2,
    ],
    ids=["another name", "no schema", "two functions"],
)
def test_a_file_creates_the_function_it_is_named_after(tmp_path: Path, script: str) -> None:
    (tmp_path / "one.sql").write_text(HEADER + script)
    with pytest.raises(InvalidMigrations, match=r"functions/one\.sql does not create foliot\.one"):
        read_functions(tmp_path)


def test_line_ends_do_not_change_a_function(tmp_path: Path) -> None:
    (tmp_path / "one.sql").write_bytes(ONE.script.replace("\n", "\r\n").encode())
    assert read_functions(tmp_path) == (ONE,)
    assert read_functions(tmp_path)[0].checksum == ONE.checksum


def test_a_comment_is_a_change_but_not_of_the_signature() -> None:
    commented = StoredFunction("one", ONE.script.replace("-- purpose: p", "-- purpose: q"))
    assert commented.checksum != ONE.checksum
    assert commented.signature == ONE.signature
