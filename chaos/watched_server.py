"""A PostgreSQL of the run's own, migrated, with a log of every change. It is as durable as one that
is not watched."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import asyncpg

from chaos.asking import connect
from foliot.embedded.server import EmbeddedServer
from foliot.runtime.clock import SystemClock
from foliot.store.migrate import migrate

CHANGE_LOG: Final = Path(__file__).with_name("change_log.sql")
SETTINGS: Final = {
    "track_commit_timestamp": "on",
    # Connections of the dead stay for a moment beside those of the nodes that replace them.
    "max_connections": "200",
    # A crash is recovered from without a look at every file; what is on the disk is the same.
    "recovery_init_sync_method": "syncfs",
}


@asynccontextmanager
async def watched_server(folder: Path) -> AsyncIterator[EmbeddedServer]:
    """`folder` is one that the server's own account may enter."""
    server = EmbeddedServer(folder / "data", settings=SETTINGS)
    try:
        await server.start()
        await migrate(server.url, SystemClock())
        admin = await connect(server.admin_url)
        await install_change_log(admin)
        await admin.close()
        yield server
    finally:
        await server.stop()


async def install_change_log(admin: asyncpg.Connection) -> None:
    """By the superuser, so that it is written whoever makes a change."""
    await admin.execute(CHANGE_LOG.read_text(encoding="utf-8"))
