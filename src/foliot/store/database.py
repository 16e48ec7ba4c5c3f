"""The way to the database: a pool of connections and short transactions on them.

A transaction is never repeated behind the caller's back: who wants to try again after
`TransactionConflict` says so. Nothing here leaves state in a session, and with `prepare=False`
not even a prepared statement, so everything works behind a pooler in transaction mode.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

import asyncpg

from foliot.store.connecting import DEFAULTS, ConnectionOptions, check_version, connect_arguments
from foliot.store.errors import DatabaseUnreachable
from foliot.store.failures import DRIVER_ERRORS, connecting_failed
from foliot.store.safety import warn_of_missing_safety
from foliot.store.session import Session, prepare_connection, transaction
from foliot.store.statements import Statement
from foliot.store.tenancy import enter_tenant
from foliot.store.url import check_url, without_password

CLOSING_SECONDS: Final = 5.0


class Database:
    """A pool of connections to one database; `open` it, or use it as `async with`."""

    def __init__(self, url: str, options: ConnectionOptions = DEFAULTS) -> None:
        check_url(url)
        self.url = without_password(url)
        self._secret_url = url
        self._options = options
        self._pool: asyncpg.Pool | None = None

    async def open(self) -> None:
        """Connect once to see that the server is there, new enough and safe to work with."""
        self._pool = await asyncpg.create_pool(
            self._secret_url,
            # No floor: connections come with use, and nothing reconnects behind our back.
            min_size=0,
            max_size=self._options.max_connections,
            init=prepare_connection,
            **connect_arguments(self._options),
        )
        try:
            async with self.connection() as session:
                check_version(session.server_version, session.server_encoding, self.url)
                if self._options.warn:
                    await warn_of_missing_safety(session)
        except BaseException:
            await self.close()
            raise

    async def close(self, *, within_seconds: float = CLOSING_SECONDS) -> None:
        """Wait a little for what is under way, then cut the rest."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(within_seconds):
                await pool.close()
        except DRIVER_ERRORS:
            pool.terminate()

    def cut(self) -> None:
        """At once, without a farewell: who waits for an answer learns that it will not come."""
        if self._pool is not None:
            self._pool.terminate()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Session]:
        """A session in which each statement is a transaction of its own."""
        pool = self._pool
        if pool is None:
            raise DatabaseUnreachable(self.url, "it is not open")
        try:
            connection = await pool.acquire(timeout=self._options.acquire_seconds)
        except DRIVER_ERRORS as error:
            raise connecting_failed(error, self.url) from None
        try:
            yield Session(connection, self.url)
        finally:
            # What the caller got is safe; a connection that cannot be given back is closed.
            with suppress(*DRIVER_ERRORS):
                await pool.release(connection)

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID | None = None) -> AsyncIterator[Session]:
        """A session in one transaction (READ COMMITTED): all of it or nothing.

        With a `tenant_id` it sees and changes the rows of that tenant alone.
        """
        async with self.connection() as session, transaction(session):
            if tenant_id is not None:
                await enter_tenant(session, tenant_id)
            yield session

    async def fetch(self, statement: Statement, *arguments: object) -> list[asyncpg.Record]:
        async with self.connection() as session:
            return await session.fetch(statement, *arguments)

    async def fetch_row(self, statement: Statement, *arguments: object) -> asyncpg.Record | None:
        async with self.connection() as session:
            return await session.fetch_row(statement, *arguments)

    async def fetch_value(self, statement: Statement, *arguments: object) -> Any:  # noqa: ANN401
        async with self.connection() as session:
            return await session.fetch_value(statement, *arguments)

    async def execute(self, statement: Statement, *arguments: object) -> int:
        async with self.connection() as session:
            return await session.execute(statement, *arguments)
