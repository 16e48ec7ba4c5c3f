"""pytest fixtures: a server for the session (one for each xdist worker), a database for each test.

In a conftest.py: `pytest_plugins = ["foliot.testing.plugin"]`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from foliot.store import connecting
from foliot.store import database as pools
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.testing.database import DatabaseFactory
from foliot.testing.pooler import is_wanted


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "direct: about the server's own line, so not for a pooler")


@contextmanager
def nothing_is_prepared() -> Iterator[None]:
    """Every connection as a user behind a pooler opens it: with `prepare=False`, whatever else the
    test asks for."""
    arguments = connecting.connect_arguments

    def unprepared(options: ConnectionOptions) -> dict[str, Any]:
        return arguments(replace(options, prepare=False))

    with pytest.MonkeyPatch.context() as patch:
        for module in (connecting, pools):
            patch.setattr(module, "connect_arguments", unprepared)
        yield


@pytest.fixture(scope="session")
def server() -> Iterator[DatabaseFactory]:
    """The throw-away server and its databases."""
    factory = DatabaseFactory()
    # A loop of our own: tests have one each, and the server outlives them all.
    options = nothing_is_prepared() if is_wanted() else nullcontext()
    with options, asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        try:
            runner.run(factory.start())
            yield factory
        finally:
            runner.run(factory.stop())


@pytest_asyncio.fixture
async def database_url(server: DatabaseFactory) -> str:
    """A migrated database that no other test sees."""
    return await server.create()


@pytest_asyncio.fixture
async def empty_database_url(server: DatabaseFactory) -> str:
    """A database that nobody has migrated."""
    return await server.create_empty()


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open pool on a migrated database of its own."""
    async with Database(database_url) as opened:
        yield opened
