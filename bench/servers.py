"""A server for each measurement: the embedded one as shipped, fsync on, in a fresh directory."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from bench.contender import Contender
from foliot.embedded import EmbeddedServer
from foliot.runtime.clock import SystemClock
from foliot.store.migrate import migrate
from foliot.testing.server import remove_leftovers

PREFIX: Final = "foliot-bench-"
# For the one who measures, not for what is measured.
UNLIMITED: Final = {
    "statement_timeout": "0",
    "transaction_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}


@asynccontextmanager
async def embedded() -> AsyncIterator[EmbeddedServer]:
    """Gone afterwards, with all that it held. It ends with this process, however that ends."""
    folder = make_folder()
    server = EmbeddedServer(folder)
    try:
        await server.start()
        yield server
    finally:
        await server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def migrated() -> AsyncIterator[EmbeddedServer]:
    """One whose database has our tables."""
    async with embedded() as server:
        await migrate(server.url, SystemClock())
        yield server


@contextmanager
def migrated_apart() -> Iterator[EmbeddedServer]:
    """The same, for those who work outside of an event loop."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            yield runner.run(stack.enter_async_context(migrated()))
        finally:
            runner.run(stack.aclose())


@asynccontextmanager
async def fresh_server(contender: Contender, jobs: int, *, fill: bool) -> AsyncIterator[str]:
    """The URL of a database with that many due jobs, or a full queue, vacuumed and checkpointed."""
    async with embedded() as server:
        await contender.install(server.url)
        async with unlimited(server.url) as db:
            await contender.add_jobs(db, jobs)
            if fill:
                await contender.fill_queue(db)
        await settle(server, contender.tables())
        yield server.url


@asynccontextmanager
async def unlimited(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection on which a statement may take as long as it likes."""
    db = await asyncpg.connect(url, server_settings=UNLIMITED)
    try:
        yield db
    finally:
        await db.close()


def make_folder() -> Path:
    """One that the server's own account may enter. Those of killed runs are removed."""
    remove_leftovers(Path(tempfile.gettempdir()), PREFIX)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    folder.chmod(0o711)
    return folder


async def settle(server: EmbeddedServer, tables: Iterable[str]) -> None:
    """Nothing of the preparation is left to be done during the measurement."""
    name = urlsplit(server.url).path.removeprefix("/")
    admin = await asyncpg.connect(server.admin_url, database=name)
    for table in tables:
        await admin.execute(f"vacuum analyze {table}")
    await admin.execute("checkpoint")
    await admin.close()


def load_average() -> str:
    return " ".join(f"{load:.1f}" for load in os.getloadavg())
