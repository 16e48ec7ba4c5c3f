"""Connections that end at the worst moment, and a database that is away for a while."""

import logging
import socket
import time

import pytest

from foliot.store.connecting import ConnectionOptions, connect, growing_delays, wait_until_reachable
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseRefused, DatabaseUnreachable
from foliot.store.session import KEEPALIVE, keep_alive
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.points import Point, When
from foliot.testing.proxy import NodeProxy

INSERT = sql("insert into foliot.notes values ($1)")
NOTES = sql("select array_agg(note) from foliot.notes")
KILL = sql(
    "select pg_terminate_backend(pid) from pg_stat_activity"
    " where datname = current_database() and pid <> pg_backend_pid()"
)


class JumpingClock:
    """Sleeping takes no time."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
async def notes(database: Database) -> Database:
    await database.execute(sql("create table foliot.notes (note text)"))
    return database


@pytest.mark.parametrize(("when", "kept"), [("after", ["one"]), ("before", None)])
async def test_a_connection_lost_in_commit_leaves_the_outcome_to_be_read(
    notes: Database, database_url: str, when: When, kept: list[str] | None
) -> None:
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:

        async def work() -> None:
            async with far.transaction() as session:
                await session.execute(INSERT, "one")
                proxy.at_point(Point(when, "commit"), cut=True)

        with pytest.raises(CommitUnknown):
            await work()
        assert await notes.fetch_value(NOTES) == kept
        assert await far.fetch_value(NOTES) == kept, "the pool heals"


async def test_a_connection_lost_before_commit_has_changed_nothing(
    notes: Database, database_url: str
) -> None:
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:

        async def work() -> None:
            async with far.transaction() as session:
                await session.execute(INSERT, "one")
                proxy.at_point(Point("inside", words=b"cut here"), cut=True)
                await session.execute(sql("select 'cut here'"))

        with pytest.raises(DatabaseUnreachable):
            await work()
    assert await notes.fetch_value(NOTES) is None


async def test_a_statement_of_its_own_is_a_commit_of_its_own(
    notes: Database, database_url: str
) -> None:
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        proxy.cut_at(b"alone", deliver=True)
        with pytest.raises(CommitUnknown):
            await far.execute(INSERT, "alone")
    assert await notes.fetch_value(NOTES) == ["alone"]


async def test_a_lost_connection_that_was_overlooked_does_not_come_back(
    notes: Database, database_url: str
) -> None:
    """The pool has taken the broken connection back while its session is still in use."""
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:

        async def work() -> None:
            async with far.transaction() as session:
                await session.execute(INSERT, "one")
                proxy.at_point(Point("inside", words=b"cut here"), cut=True)
                for _ in range(2):
                    with pytest.raises(DatabaseUnreachable):
                        await session.execute(sql("select 'cut here'"))

        with pytest.raises(CommitUnknown):
            await work()
    assert await notes.fetch_value(NOTES) is None


async def test_a_killed_backend_is_replaced(notes: Database, database_url: str) -> None:
    async with Database(database_url, ConnectionOptions(max_connections=1)) as other:

        async def work() -> None:
            async with other.transaction() as session:
                await session.execute(INSERT, "one")
                await notes.fetch(KILL)
                await session.execute(INSERT, "two")

        with pytest.raises(DatabaseUnreachable):
            await work()
        assert await other.fetch_value(NOTES) is None


@pytest.mark.direct
async def test_a_connection_to_a_standby_is_given_up_for_a_new_one(
    notes: Database, database_url: str, server: DatabaseFactory
) -> None:
    """After a failover the old connections lead to a server that takes no writes any more."""
    name = database_url.partition("@/")[2].partition("?")[0]
    setting = f"alter role foliot in database {name} set default_transaction_read_only"
    async with connect(server.admin_url) as admin:
        await admin.execute(sql(f"{setting} = on"))
        async with Database(database_url, ConnectionOptions(max_connections=1)) as other:
            await admin.execute(sql(f"{setting} = off"))
            with pytest.raises(DatabaseUnreachable, match="read-only"):
                await other.execute(INSERT, "one")
            await other.execute(INSERT, "two")
    assert await notes.fetch_value(NOTES) == ["two"]


async def test_a_server_that_falls_silent_is_given_up_in_time(database_url: str) -> None:
    options = ConnectionOptions(command_seconds=0.2, connect_seconds=0.2, acquire_seconds=0.5)
    async with NodeProxy(database_url) as proxy, Database(proxy.url, options) as far:
        async with far.connection() as session:
            proxy.fall_silent()
            began = time.monotonic()
            with pytest.raises(CommitUnknown, match="no answer in time"):
                await session.execute(sql("select 1"))
        assert time.monotonic() - began < 2
        with pytest.raises(DatabaseUnreachable, match="no answer in time"):
            await far.execute(sql("select 1"))


async def test_waiting_for_a_database_names_each_new_reason_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "foliot")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        away = f"postgresql://foliot:hunter2@127.0.0.1:{unused.getsockname()[1]}/foliot"
        clock = JumpingClock()
        with pytest.raises(DatabaseUnreachable, match="connection refused"):
            await wait_until_reachable(away, clock, patience_seconds=30.0)
    assert clock.slept == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0]
    (said,) = caplog.messages
    assert said.endswith("is not reachable: connection refused; trying again")
    assert "hunter2" not in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.direct
async def test_a_database_that_comes_is_waited_for(
    server: DatabaseFactory, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every connection is taken, until the third attempt."""
    caplog.set_level(logging.INFO, "foliot")
    async with connect(server.admin_url) as admin:
        limit = sql("alter role foliot connection limit 0")
        await admin.execute(limit)

        class Clock(JumpingClock):
            async def sleep(self, seconds: float) -> None:
                await super().sleep(seconds)
                if len(self.slept) == 2:
                    await admin.execute(sql("alter role foliot connection limit -1"))

        clock = Clock()
        await wait_until_reachable(database_url, clock)
    assert clock.slept == [0.2, 0.4]
    first, last = caplog.messages
    assert first.endswith("it has too many connections; trying again")
    assert last.endswith("is reachable")


async def test_waiting_does_not_help_against_a_refusal(server: DatabaseFactory) -> None:
    clock = JumpingClock()
    with pytest.raises(DatabaseRefused):
        await wait_until_reachable(server.server.url("nowhere"), clock)
    assert clock.slept == []


def test_delays_double_up_to_five_seconds() -> None:
    delays = growing_delays()
    assert [round(next(delays), 3) for _ in range(7)] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


async def test_every_tcp_connection_has_keepalives(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wires: list[socket.socket] = []
    monkeypatch.setattr("foliot.store.session.keep_alive", wires.append)
    async with NodeProxy(database_url) as proxy, connect(proxy.url):
        assert [wire.family for wire in wires] == [socket.AF_INET]


def test_a_dead_peer_is_noticed_by_the_kernel() -> None:
    with socket.socket() as wire:
        keep_alive(wire)
        assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        for option in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT"):
            if number := getattr(socket, option, None):
                assert wire.getsockopt(socket.IPPROTO_TCP, number) == KEEPALIVE[option]
    with socket.socket(socket.AF_UNIX) as local:
        keep_alive(local)
        assert local.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
