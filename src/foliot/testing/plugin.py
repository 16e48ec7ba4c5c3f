"""pytest fixtures: a server for the session (one for each xdist worker), a database for each test.

In a conftest.py: `pytest_plugins = ["foliot.testing.plugin"]`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from foliot.store.database import Database
from foliot.testing.database import DatabaseFactory


@pytest.fixture(scope="session")
def server() -> Iterator[DatabaseFactory]:
    """The throw-away server and its databases."""
    factory = DatabaseFactory()
    # A loop of our own: tests have one each, and the server outlives them all.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
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
