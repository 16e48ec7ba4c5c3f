"""The wire that can fail: what passes unhurt, and what each fault does to a real connection."""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator

import asyncpg
import pytest

from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseUnreachable
from foliot.store.statements import Statement
from foliot.testing.database import sql
from foliot.testing.proxy import NodeProxy
from foliot.testing.soon import soon

pytestmark = pytest.mark.direct

INSERT = sql("insert into foliot.notes values ($1)")
NOTES = sql("select coalesce(array_agg(note order by note), '{}') from foliot.notes")
CONNECTED = sql("select count(*) from pg_stat_activity where application_name = 'far'")
HUNG_UP = "closed|reset"
FAR = ConnectionOptions(application_name="far", command_seconds=5, connect_seconds=5)
HASTY = ConnectionOptions(
    application_name="far", command_seconds=0.2, connect_seconds=0.2, acquire_seconds=0.5
)


@pytest.fixture
async def notes(database: Database) -> Database:
    await database.execute(sql("create table foliot.notes (note text)"))
    return database


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[NodeProxy]:
    async with NodeProxy(database_url, "scheduler-1") as opened:
        yield opened


async def holds(database: Database, statement: Statement, value: object) -> None:
    """Wait until the statement's answer is this."""

    async def is_so() -> bool:
        return bool(await database.fetch_value(statement) == value)

    await soon(is_so)


async def stays(database: Database, statement: Statement, value: object) -> None:
    """Look so often that what could happen would have."""
    for _ in range(30):
        assert await database.fetch_value(statement) == value


async def test_much_passes_both_ways_unchanged(proxy: NodeProxy) -> None:
    """More than any buffer holds, in one message and in many."""
    text = "0123456789" * 1_000_000
    async with Database(proxy.url, FAR) as far:
        assert await far.fetch_value(sql("select $1::text || 'x'"), text) == f"{text}x"
        rows = await far.fetch(
            sql("select n, repeat('y', n % 900) from generate_series(1, 20000) n")
        )
    assert [len(row[1]) for row in rows] == [number % 900 for number in range(1, 20_001)]


@pytest.mark.usefixtures("notes")
async def test_copied_data_passes_unread(proxy: NodeProxy) -> None:
    strike = proxy.cut_at(b"needle", deliver=False)
    lines = [(f"needle {number}",) for number in range(5000)]
    connection = await asyncpg.connect(proxy.url)
    try:
        await connection.copy_records_to_table("notes", schema_name="foliot", records=lines)
        assert await connection.fetchval("select count(*) from foliot.notes") == len(lines)
    finally:
        await connection.close()
    assert not strike.struck.is_set()


async def test_who_asks_for_encryption_is_told_that_there_is_none(proxy: NodeProxy) -> None:
    connection = await asyncpg.connect(proxy.url.replace("sslmode=disable", "sslmode=prefer"))
    try:
        assert await connection.fetchval("select 1") == 1
    finally:
        await connection.close()
    with pytest.raises(ConnectionError):
        await asyncpg.connect(proxy.url.replace("sslmode=disable", "sslmode=require"))


async def test_a_request_to_cancel_reaches_the_server(proxy: NodeProxy) -> None:
    connection = await asyncpg.connect(proxy.url)
    try:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await connection.execute("select pg_sleep(60)", timeout=0.1)
        assert await connection.fetchval("select 1") == 1
        assert time.monotonic() - began < 30
    finally:
        await connection.close()


async def test_notifications_pass_between_rounds(proxy: NodeProxy, database: Database) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    connection = await asyncpg.connect(proxy.url)
    try:
        await connection.add_listener("proxied", lambda *told: heard.put_nowait(str(told[-1])))
        await database.execute(sql("select pg_notify('proxied', 'hello')"))
        async with asyncio.timeout(10):
            assert await heard.get() == "hello"
    finally:
        await connection.close()


async def test_a_server_that_is_away_is_unreachable(database_url: str) -> None:
    away = database_url.replace("port=5432", "port=1")
    async with NodeProxy(away) as proxy:
        with pytest.raises(DatabaseUnreachable, match=HUNG_UP):
            await Database(proxy.url, FAR).open()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        away = f"postgresql://foliot@127.0.0.1:{unused.getsockname()[1]}/foliot"
        async with NodeProxy(away) as proxy:
            with pytest.raises(DatabaseUnreachable, match=HUNG_UP):
                await Database(proxy.url, FAR).open()


async def test_one_proxy_can_stand_before_another(notes: Database, proxy: NodeProxy) -> None:
    """A server is reached by TCP as it is by its socket."""
    async with NodeProxy(proxy.url) as nearer, Database(nearer.url, FAR) as far:
        await far.execute(INSERT, "one")
    assert await notes.fetch_value(NOTES) == ["one"]


async def test_what_is_no_protocol_of_ours_is_hung_up_on(proxy: NodeProxy) -> None:
    reader, writer = await asyncio.open_connection(*address(proxy))
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(10):
        assert await reader.read() == b""
    writer.close()


def address(proxy: NodeProxy) -> tuple[str, int]:
    host, port = proxy.url.partition("@")[2].partition("/")[0].split(":")
    return host, int(port)


def opening(database_url: str) -> bytes:
    name = database_url.partition("@/")[2].partition("?")[0]
    settings = f"user\0foliot\0database\0{name}\0\0".encode()
    return struct.pack("!II", 8 + len(settings), 196608) + settings


async def test_a_reset_is_a_reset_and_new_connections_work(
    notes: Database, proxy: NodeProxy, database_url: str
) -> None:
    reader, writer = await asyncio.open_connection(*address(proxy))
    writer.write(opening(database_url))
    await reader.readuntil(b"Z\0\0\0\5I")
    async with Database(proxy.url, FAR) as far:
        async with far.connection() as session:
            await session.execute(INSERT, "one")
            assert proxy.connections == 2
            proxy.reset()
            with pytest.raises(ConnectionResetError):
                await reader.read()
            with pytest.raises(CommitUnknown):
                await session.execute(INSERT, "two")
        await far.execute(INSERT, "three")
    writer.close()
    assert await notes.fetch_value(NOTES) == ["one", "three"]


async def test_the_stranded_hear_nothing_and_others_work(notes: Database, proxy: NodeProxy) -> None:
    async with Database(proxy.url, HASTY) as far:
        async with far.connection() as session:
            proxy.strand()
            with pytest.raises(CommitUnknown, match="no answer in time"):
                await session.execute(INSERT, "one")
        await far.execute(INSERT, "two")
        # Who gives a stranded connection up does not leave it to the server.
        await holds(notes, CONNECTED, 1)
    assert await notes.fetch_value(NOTES) == ["two"]


async def test_what_was_said_in_a_silence_arrives_late(notes: Database, proxy: NodeProxy) -> None:
    async with Database(proxy.url, FAR) as far:
        await far.execute(INSERT, "one")
        proxy.fall_silent()
        late = asyncio.ensure_future(far.execute(INSERT, "two"))
        await stays(notes, NOTES, ["one"])
        proxy.speak()
        await late
    assert await notes.fetch_value(NOTES) == ["one", "two"]


async def test_a_silent_way_to_the_server_keeps_statements_from_it(
    notes: Database, proxy: NodeProxy
) -> None:
    async with Database(proxy.url, FAR) as far:
        await far.execute(INSERT, "one")
        proxy.fall_silent("to server")
        late = asyncio.ensure_future(far.execute(INSERT, "two"))
        await stays(notes, NOTES, ["one"])
        proxy.speak()
        await late


async def test_a_silent_way_to_the_client_keeps_answers_from_it(
    notes: Database, proxy: NodeProxy
) -> None:
    async with Database(proxy.url, FAR) as far:
        await far.execute(INSERT, "one")
        proxy.fall_silent("to client")
        late = asyncio.ensure_future(far.execute(INSERT, "two"))
        await holds(notes, NOTES, ["one", "two"])
        assert not late.done()
        proxy.speak()
        assert await late == 1


async def test_a_silence_has_room_for_those_who_come_and_go(
    notes: Database, proxy: NodeProxy
) -> None:
    """They reach nobody; after it the server is told that the others are gone."""
    async with Database(proxy.url, HASTY) as far:
        await far.execute(INSERT, "one")
        proxy.fall_silent()
        for _ in range(3):
            with pytest.raises((CommitUnknown, DatabaseUnreachable)):
                await far.execute(INSERT, "lost")
        assert await notes.fetch_value(CONNECTED) == 1
        far.cut()
        proxy.speak()
        await holds(notes, CONNECTED, 0)


async def test_a_slow_network_takes_its_time_each_way(notes: Database, proxy: NodeProxy) -> None:
    async with Database(proxy.url, FAR) as far:
        await far.execute(INSERT, "one")
        proxy.slow(0.1, lambda: 0.5)
        began = time.monotonic()
        await far.execute(INSERT, "two")
        assert 0.2 <= time.monotonic() - began < 2
        proxy.slow(0.1, lambda: 0.0)
        began = time.monotonic()
        await far.execute(INSERT, "three")
        assert 0.1 <= time.monotonic() - began < 2
        proxy.slow(0)
    assert await notes.fetch_value(NOTES) == ["one", "three", "two"]


async def test_the_end_of_a_block_is_the_end_of_every_connection(
    database: Database, database_url: str
) -> None:
    async with NodeProxy(database_url) as proxy:
        url = proxy.url
        connection = await asyncpg.connect(url, server_settings={"application_name": "far"})
        assert await database.fetch_value(CONNECTED) == 1
        proxy.slow(600)
        unanswered = asyncio.ensure_future(connection.fetchval("select 1"))
        await stays(database, CONNECTED, 1)
    with pytest.raises((OSError, asyncpg.PostgresError)):
        await unanswered
    await holds(database, CONNECTED, 0)
    with pytest.raises(ConnectionRefusedError):
        await asyncpg.connect(url)
