"""A deed at a statement: what the database holds at that moment, and what the node learns of it."""

import asyncio
import os
import signal
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.errors import CommitUnknown, DatabaseUnreachable, StatementFailed
from foliot.store.statements import statement
from foliot.testing.database import sql
from foliot.testing.points import Point, When
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_job
from foliot.testing.soon import soon
from foliot.testing.wire import QUERY, encode

pytestmark = pytest.mark.direct

INSERT = sql("insert into foliot.notes values ($1)")
NOTES = sql("select coalesce(array_agg(note order by note), '{}') from foliot.notes")
LIVE = sql("select count(*) from foliot.executions")
LANE = statement("lanes/put_lane")
LANES = sql("select count(*) from foliot.lanes where queue = 'far'")
CONNECTED = sql("select count(*) from pg_stat_activity where application_name = 'far'")
FAR = ConnectionOptions(application_name="far")


@pytest.fixture
async def notes(database: Database) -> Database:
    await database.execute(sql("create table foliot.notes (note text unique)"))
    return database


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[NodeProxy]:
    async with NodeProxy(database_url) as opened:
        yield opened


@asynccontextmanager
async def held_at(proxy: NodeProxy, point: Point) -> AsyncIterator[None]:
    """While the block runs, nothing moves: the node's statement has come to `point`."""
    strike = proxy.at_point(point, proxy.fall_silent)
    async with asyncio.timeout(10):
        await strike.struck.wait()
    yield
    proxy.speak()


@pytest.mark.parametrize("name", ["enqueue", "executions/enqueue"])
@pytest.mark.parametrize(("when", "rows"), [("before", 0), ("after", 1)])
async def test_a_deed_comes_before_or_after_a_statement(
    database: Database, proxy: NodeProxy, name: str, when: When, rows: int
) -> None:
    job = await make_job(database)
    request = Request(DEFAULT_TENANT, "POST /v1/executions", "r1", NOW)
    async with Database(proxy.url, FAR) as far:
        asked = asyncio.ensure_future(enqueue(far, request, [Wanted(job.job_id)], NOW))
        async with held_at(proxy, Point(when, name)):
            assert await database.fetch_value(LIVE) == rows
            assert not asked.done()
        (answer,) = await asked
    assert not answer.replayed
    assert await database.fetch_value(LIVE) == 1
    for each in ("before", "after"):
        assert proxy.points_seen[Point(each, "executions/enqueue")] == 1


async def change(far: Database, *, fail: bool = False) -> None:
    """A transaction that holds a statement with a name, and another after it."""
    async with far.transaction() as session:
        await session.execute(LANE, "far", None, [], "HANDLER", "work")
        await session.execute(INSERT, "one")
        if fail:
            raise LookupError


@pytest.mark.parametrize(
    ("point", "rows"),
    [
        (Point("inside", "begin"), 0),
        (Point("before", "lanes/put_lane"), 0),
        (Point("inside", "lanes/put_lane"), 0),
        (Point("inside", words=b"foliot.notes"), 0),
        (Point("before", "commit"), 0),
        (Point("after", "lanes/put_lane"), 1),
        (Point("after", "commit"), 1),
    ],
    ids=lambda it: str(it) if isinstance(it, Point) else None,
)
async def test_a_deed_comes_inside_a_transaction_or_after_its_commit(
    notes: Database, proxy: NodeProxy, point: Point, rows: int
) -> None:
    async with Database(proxy.url, FAR) as far:
        changing = asyncio.ensure_future(change(far))
        async with held_at(proxy, point):
            assert await notes.fetch_value(LANES) == rows
            assert not changing.done()
            in_transaction = await notes.fetch_value(
                sql(
                    "select count(*) from pg_stat_activity where xact_start is not null"
                    " and application_name = 'far' and datname = current_database()"
                )
            )
            assert in_transaction == (point.when != "after")
        await changing
    assert await notes.fetch_value(LANES) == 1


async def test_a_lost_answer_of_a_statement_of_its_own(notes: Database, proxy: NodeProxy) -> None:
    async with Database(proxy.url, FAR) as far:
        strike = proxy.lose_next_commit_answer("lanes/put_lane")
        await far.execute(INSERT, "one")
        with pytest.raises(CommitUnknown):
            await far.execute(LANE, "far", None, [], "HANDLER", "work")
        assert strike.struck.is_set()
        assert await notes.fetch_value(LANES) == 1
        await far.execute(INSERT, "two")
    assert await notes.fetch_value(NOTES) == ["one", "two"]


@pytest.mark.parametrize("name", ["commit", "lanes/put_lane"])
async def test_a_lost_answer_of_a_commit(notes: Database, proxy: NodeProxy, name: str) -> None:
    async with Database(proxy.url, FAR) as far:
        proxy.lose_next_commit_answer(name)
        with pytest.raises(CommitUnknown):
            await change(far)
    assert await notes.fetch_value(LANES) == 1
    assert await notes.fetch_value(NOTES) == ["one"]


@pytest.mark.parametrize(
    ("point", "error"),
    [
        (Point("before", "lanes/put_lane"), DatabaseUnreachable),
        (Point("inside", "lanes/put_lane"), DatabaseUnreachable),
        (Point("before", "commit"), CommitUnknown),
    ],
    ids=str,
)
async def test_a_line_that_is_cut_before_the_commit_has_changed_nothing(
    notes: Database, proxy: NodeProxy, point: Point, error: type[Exception]
) -> None:
    async with Database(proxy.url, FAR) as far:
        proxy.at_point(point, cut=True)
        with pytest.raises(error):
            await change(far)
        assert await notes.fetch_value(LANES) == 0
        await change(far)
    assert await notes.fetch_value(LANES) == 1


async def test_what_came_to_nothing_is_waited_for_again(notes: Database, proxy: NodeProxy) -> None:
    """A transaction that was rolled back, and a statement that failed, are not what was meant."""
    async with Database(proxy.url, FAR) as far:
        strike = proxy.lose_next_commit_answer("lanes/put_lane")
        with pytest.raises(LookupError):
            await change(far, fail=True)
        await notes.execute(INSERT, "one")
        with pytest.raises(StatementFailed, match="unique"):
            await change(far)
        assert not strike.struck.is_set()
        await notes.execute(sql("delete from foliot.notes"))
        with pytest.raises(CommitUnknown):
            await change(far)
        assert strike.struck.is_set()


async def test_a_failed_statement_of_its_own_is_not_after_it(
    notes: Database, proxy: NodeProxy
) -> None:
    async with Database(proxy.url, FAR) as far:
        await notes.execute(INSERT, "one")
        strike = proxy.cut_at(b"one", deliver=True)
        with pytest.raises(StatementFailed, match="unique"):
            await far.execute(INSERT, "one")
        assert not strike.struck.is_set()
        await notes.execute(sql("delete from foliot.notes"))
        with pytest.raises(CommitUnknown):
            await far.execute(INSERT, "one")


async def test_a_strike_outlives_a_connection_that_was_lost_before_it(
    notes: Database, proxy: NodeProxy
) -> None:
    async with Database(proxy.url, FAR) as far:
        strike = proxy.lose_next_commit_answer("lanes/put_lane")
        proxy.at_point(Point("before", "commit"), cut=True)
        with pytest.raises(CommitUnknown):
            await change(far)
        assert not strike.struck.is_set()
        with pytest.raises(CommitUnknown):
            await change(far)
    assert strike.struck.is_set()
    assert await notes.fetch_value(LANES) == 1


async def test_what_is_forgotten_does_not_strike(notes: Database, proxy: NodeProxy) -> None:
    async with Database(proxy.url, FAR) as far:
        strikes = [proxy.lose_next_commit_answer("lanes/put_lane") for _ in range(2)]

        async def work() -> None:
            async with far.transaction() as session:
                await session.execute(LANE, "far", None, [], "HANDLER", "work")
                proxy.heal()

        await work()
        await change(far)
    assert not any(strike.struck.is_set() for strike in strikes)
    assert await notes.fetch_value(LANES) == 1


async def test_a_deed_may_end_every_connection(notes: Database, proxy: NodeProxy) -> None:
    async with Database(proxy.url, FAR) as far:
        proxy.at_point(Point("before", "lanes/put_lane"), proxy.reset)
        with pytest.raises(DatabaseUnreachable):
            await change(far)
        proxy.at_point(Point("after", "lanes/put_lane"), proxy.reset)
        with pytest.raises(CommitUnknown):
            await change(far)
    assert await notes.fetch_value(LANES) == 1


async def test_of_several_rounds_in_one_piece_only_the_one_that_was_meant_is_lost(
    notes: Database, proxy: NodeProxy, database_url: str
) -> None:
    host, port = proxy.url.partition("@")[2].partition("/")[0].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    name = database_url.partition("@/")[2].partition("?")[0]
    settings = f"user\0foliot\0database\0{name}\0\0".encode()
    writer.write(struct.pack("!II", 8 + len(settings), 196608) + settings)
    await reader.readuntil(b"Z\0\0\0\5I")
    proxy.cut_at(b"'two'", deliver=True)
    template = "insert into foliot.notes values ('?')\0"
    asked = [template.replace("?", note) for note in ("one", "two", "three")]
    writer.write(b"".join(encode(QUERY, each.encode()) for each in asked))
    async with asyncio.timeout(10):
        told = await reader.read()
    writer.close()
    assert told.count(b"INSERT 0 1\0Z\0\0\0\5I") == 1
    assert told.endswith(b"Z\0\0\0\5I")
    assert {"one", "two"} <= set(await notes.fetch_value(NOTES))


CLIENT = """
import asyncio, sys, asyncpg
async def main():
    connection = await asyncpg.connect(sys.argv[1], server_settings={"application_name": "far"})
    await connection.execute("insert into foliot.notes values ($1)", "last words")
    print("answered", flush=True)
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("when", "cut", "kept"),
    [("before", True, []), ("before", False, ["last words"]), ("after", False, ["last words"])],
)
async def test_a_node_is_killed_at_a_statement(
    notes: Database, proxy: NodeProxy, when: When, cut: bool, kept: list[str]
) -> None:
    """What it had sent arrives all the same, as it would from a network, unless it is cut."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, proxy.url, stdout=asyncio.subprocess.PIPE
    )
    proxy.at_point(
        Point(when, words=b"last words"), lambda: os.kill(process.pid, signal.SIGKILL), cut=cut
    )
    output, _ = await process.communicate()
    assert (process.returncode, output) == (-signal.SIGKILL, b"")

    async def gone() -> bool:
        return not await notes.fetch_value(CONNECTED)

    await soon(gone)
    assert await notes.fetch_value(NOTES) == kept
