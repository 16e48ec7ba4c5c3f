"""A server for each measurement: the embedded one as shipped, fsync on, in a fresh directory."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

from bench.contender import Contender
from foliot.embedded import EmbeddedServer


@asynccontextmanager
async def fresh_server(contender: Contender, jobs: int, *, fill: bool) -> AsyncIterator[str]:
    """The URL of a database with that many due jobs, or a full queue, vacuumed and checkpointed."""
    folder = make_folder()
    server = EmbeddedServer(folder)
    try:
        await server.start()
        await _fill(contender, server, jobs, fill=fill)
        yield server.url
    finally:
        await server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def make_folder() -> Path:
    """One that the server's own account may enter."""
    folder = Path(tempfile.mkdtemp(prefix="foliot-bench-"))
    folder.chmod(0o711)
    return folder


async def _fill(contender: Contender, server: EmbeddedServer, jobs: int, *, fill: bool) -> None:
    await contender.install(server.url)
    db = await asyncpg.connect(server.url, server_settings={"statement_timeout": "0"})
    await contender.add_jobs(db, jobs)
    if fill:
        await contender.fill_queue(db)
    await db.close()
    await settle(contender, server.admin_url, server.url)


async def settle(contender: Contender, admin_url: str, url: str) -> None:
    """Nothing of the preparation is left to be done during the measurement."""
    admin = await asyncpg.connect(admin_url, database=urlsplit(url).path.removeprefix("/"))
    for table in contender.tables():
        await admin.execute(f"vacuum analyze {table}")
    await admin.execute("checkpoint")
    await admin.close()


def load_average() -> str:
    return " ".join(f"{load:.1f}" for load in os.getloadavg())
