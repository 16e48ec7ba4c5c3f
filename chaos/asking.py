"""Questions of those who watch, on a connection of their own past every proxy, as the superuser
whom no limit holds up. One that is lost is opened anew: the database may be down at any moment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import asyncpg

from foliot.embedded.roles import DATABASE

APPLICATION: Final = "chaos"
CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.1
PATIENCE_SECONDS: Final = 60.0
NO_ANSWER: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError)


async def connect(admin_url: str) -> asyncpg.Connection:
    return await asyncpg.connect(
        admin_url,
        database=DATABASE,
        timeout=CONNECT_SECONDS,
        command_timeout=ANSWER_SECONDS,
        server_settings={"application_name": APPLICATION},
    )


class Asker:
    def __init__(self, admin_url: str) -> None:
        self._url = admin_url
        self._connection: asyncpg.Connection | None = None
        self._turn = asyncio.Lock()

    async def fetch(
        self, query: str, *arguments: object, patience_seconds: float = PATIENCE_SECONDS
    ) -> list[asyncpg.Record]:
        """The rows, as soon as the database answers; TimeoutError if it does not for so long."""
        async with asyncio.timeout(patience_seconds):
            while True:
                try:
                    async with self._turn:
                        return list(await (await self._connected()).fetch(query, *arguments))
                except asyncpg.SyntaxOrAccessError:
                    raise
                except NO_ANSWER:
                    await asyncio.sleep(PAUSE_SECONDS)

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._url)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()


@asynccontextmanager
async def asking(admin_url: str) -> AsyncIterator[Asker]:
    asker = Asker(admin_url)
    try:
        yield asker
    finally:
        asker.close()
