"""Transports keep their contract; and the database's notifications do so through losses."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import urlsplit

import pytest

from foliot.runtime.clock import SystemClock
from foliot.runtime.service import beside
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.loopback import Loopback
from foliot.testing.proxy import NodeProxy
from foliot.testing.soon import soon
from foliot.testing.transports import EVERY_CHECK, Heard, Make, until_flow
from foliot.transport.port import Matter, Transport
from foliot.transport.postgres import DirectLine, PostgresTransport

LISTENS = "listens to hints"
OPTIONS = ConnectionOptions(application_name=LISTENS, connect_seconds=1.0)
HURRY = 50
KILL = sql(
    "select pg_terminate_backend(pid) from pg_stat_activity"
    " where datname = current_database() and application_name = $1"
)
LISTENERS = sql(
    "select count(*) from pg_stat_activity"
    " where datname = current_database() and application_name = $1"
)


class HastyClock:
    """Seconds are twenty milliseconds."""

    def __init__(self) -> None:
        self._clock = SystemClock()

    def monotonic(self) -> float:
        return self._clock.monotonic() * HURRY

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds / HURRY)


def straight(server: DatabaseFactory, url: str) -> str:
    """Past the pooler, if there is one."""
    return server.server.url(urlsplit(url).path.removeprefix("/"))


@asynccontextmanager
async def opened(database: Database, line: str | None) -> AsyncIterator[PostgresTransport]:
    there = None if line is None else DirectLine(line, OPTIONS)
    transport = PostgresTransport(database, SystemClock(), there)
    async with beside(transport.run(), name="hints"):
        yield transport


@pytest.fixture
def line(server: DatabaseFactory, database_url: str) -> str:
    return straight(server, database_url)


@pytest.fixture(params=["postgres", "loopback"])
def make(request: pytest.FixtureRequest, database: Database, line: str) -> Make:
    wire: list[Loopback] = []

    @asynccontextmanager
    async def make_loopback() -> AsyncIterator[Transport]:
        transport = Loopback(wire)
        async with beside(transport.run(), name="hints"):
            yield transport

    def make_postgres() -> AbstractAsyncContextManager[Transport]:
        return opened(database, line)

    return make_postgres if request.param == "postgres" else make_loopback


@pytest.mark.parametrize("check", EVERY_CHECK, ids=lambda check: check.__name__)
async def test_the_contract(check: Callable[[Make], Awaitable[None]], make: Make) -> None:
    await check(make)


async def test_a_line_that_was_cut_is_made_again(database: Database, line: str) -> None:
    async with opened(database, line) as here:
        await until_flow(here)
        heard = Heard(here, Matter.WORK)
        assert await database.execute(KILL, LISTENS) == 1
        await heard.until_told_of_everything()

        async def came_twice() -> bool:
            return len(heard.told) >= 2 and here.flows

        await soon(came_twice)
        assert not heard.names(), "once for the loss, once for the new line"
        here.publish(Matter.WORK, ["a"])
        await heard.until_told("a")


async def test_a_hint_published_while_the_line_is_cut_changes_nothing(
    database: Database, line: str
) -> None:
    async with opened(database, line) as here:
        await until_flow(here)
        heard = Heard(here, Matter.WORK)
        for number in range(5):
            await database.execute(KILL, LISTENS)
            here.publish(Matter.WORK, [str(number)])
        await until_flow(here)
        here.publish(Matter.WORK, ["last"])

        async def is_heard() -> bool:
            here.publish(Matter.WORK, ["last"])
            return "last" in heard.names()

        await soon(is_heard)


async def test_without_a_line_nothing_flows_and_publishing_works(
    database: Database, line: str
) -> None:
    async with opened(database, None) as deaf, opened(database, line) as there:
        await until_flow(there)
        told, untold = Heard(there, Matter.STAGE), Heard(deaf, Matter.STAGE)
        deaf.publish(Matter.STAGE, ["7"])
        await told.until_told("7")
        assert not deaf.flows
        assert not untold.told


async def test_a_line_on_which_nothing_arrives_never_counts(
    database: Database, server: DatabaseFactory
) -> None:
    """As through a pooler in transaction mode: the connection stands, and brings nothing."""
    elsewhere = straight(server, await server.create())
    transport = PostgresTransport(database, HastyClock(), DirectLine(elsewhere, OPTIONS))
    heard = Heard(transport, Matter.WORK)
    seen: set[bool] = set()
    async with beside(transport.run(), name="hints"), Database(elsewhere) as other:

        async def came_and_went() -> bool:
            seen.add(bool(await other.fetch_value(LISTENERS, LISTENS)))
            return len(seen) == 2

        await soon(came_and_went)
        seen.clear()
        await soon(came_and_went)
        assert not transport.flows
        assert not heard.told


async def test_a_line_that_falls_silent_is_noticed(database: Database, line: str) -> None:
    async with NodeProxy(line) as proxy:
        transport = PostgresTransport(database, HastyClock(), DirectLine(proxy.url, OPTIONS))
        async with beside(transport.run(), name="hints"):
            await until_flow(transport)
            heard = Heard(transport, Matter.WORK)
            proxy.fall_silent()
            await until_flow(transport, flows=False)
            await heard.until_told_of_everything()


async def test_what_is_published_in_a_burst_is_few_messages(database: Database, line: str) -> None:
    async with opened(database, line) as here:
        await until_flow(here)
        heard = Heard(here, Matter.WORK)
        for number in range(50):
            here.publish(Matter.WORK, [str(number)])
        await heard.until_told("49")
        assert heard.told == [frozenset(map(str, range(50)))]


async def test_a_message_of_another_version_is_passed_over(database: Database, line: str) -> None:
    async with opened(database, line) as here:
        await until_flow(here)
        heard = Heard(here, Matter.WORK)
        for text in ("", "[]", "{", '{"work": 3}', '{"novelty": ["a"], "work": ["b", 4]}'):
            await database.execute(sql("select pg_notify('foliot_hints', $1)"), text)
        await heard.until_told("b")
        assert heard.told == [frozenset({"b"})]
