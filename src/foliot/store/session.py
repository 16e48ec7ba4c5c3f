"""One connection, lent for a moment: it runs statements and turns failures into our own errors.

A session keeps nothing between transactions (no SET, no session locks, no LISTEN, no temporary
tables), so a pooler in transaction mode may give every transaction another server connection.
A json argument is any Python value. Many of them travel as `text[]`, each made by `encode_json`
and cast in SQL: in a `jsonb[]` a value that is itself a list would pass for another dimension.
"""

import json
import socket
from asyncio import AbstractEventLoop, Transport
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from foliot.store.errors import CommitUnknown, DatabaseUnreachable, StatementFailed
from foliot.store.failures import DRIVER_ERRORS, statement_failed
from foliot.store.statements import Statement

Result = TypeVar("Result")

# A peer that is gone without a word is noticed after 10 + 3 × 3 s.
KEEPALIVE: Final = {
    "TCP_KEEPIDLE": 10,
    "TCP_KEEPALIVE": 10,  # the name macOS has for it
    "TCP_KEEPINTVL": 3,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 19_000,  # milliseconds; unanswered data is given up as fast
}

# The arrays that statements take and return. The driver asks the server about each when it first
# meets it, with `jit` turned off for the session meanwhile: behind a pooler, where another server
# connection would be asked to turn it on again, one would be left without.
READ_ARRAYS: Final = (
    "select '{}'::bool[], '{}'::int2[], '{}'::int4[], '{}'::int8[], '{}'::float8[], '{}'::uuid[],"
    " '{}'::timestamptz[]"
)


class PooledConnection(asyncpg.Connection):
    """The driver's connection with keepalives on and no reset query: there is nothing to reset."""

    def __init__(
        self,
        protocol: Any,  # noqa: ANN401 - the driver's own types, handed through
        transport: Transport,
        loop: AbstractEventLoop,
        *rest: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(protocol, transport, loop, *rest)
        keep_alive(transport.get_extra_info("socket"))

    def get_reset_query(self) -> str:
        return ""


def keep_alive(sock: socket.socket) -> None:
    """Let the kernel notice a dead peer; a unix socket has no such peer."""
    if sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE.items():
        if number := getattr(socket, option, None):
            sock.setsockopt(socket.IPPROTO_TCP, number, value)


def encode_json(value: object) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


async def prepare_connection(connection: asyncpg.Connection) -> None:
    """JSON arrives as Python values and leaves as JSON, and arrays are known; this is the client's
    own state. In one transaction, so in one place."""
    # Whoever opened the connection closes it if this fails: there is nothing to roll back.
    try:
        for name in ("json", "jsonb"):
            await connection.set_type_codec(
                name, schema="pg_catalog", encoder=encode_json, decoder=json.loads, format="text"
            )
        await connection.execute("begin")
        await connection.fetch(READ_ARRAYS)
        await connection.execute("end")
    except (asyncpg.InterfaceError, asyncpg.InternalClientError):
        # The driver's words for a connection that was lost between two of them.
        raise ConnectionResetError("the connection was closed") from None


class Session:
    """Runs statements on one connection, inside a transaction or each on its own."""

    def __init__(self, connection: PooledConnection | PoolConnectionProxy, url: str) -> None:
        self.url = url
        self._connection = connection
        self._in_transaction = False

    @property
    def server_version(self) -> int:
        """The major one: 18."""
        return self._connection.get_server_version().major

    @property
    def server_encoding(self) -> str:
        return str(getattr(self._connection.get_settings(), "server_encoding", "UTF8"))

    async def fetch(self, statement: Statement, *arguments: object) -> list[asyncpg.Record]:
        return await self._ask(statement.name, self._connection.fetch, statement.sql, *arguments)

    async def fetch_row(self, statement: Statement, *arguments: object) -> asyncpg.Record | None:
        return await self._ask(statement.name, self._connection.fetchrow, statement.sql, *arguments)

    async def fetch_value(self, statement: Statement, *arguments: object) -> Any:  # noqa: ANN401
        """The first column of the first row; None without a row."""
        return await self._ask(statement.name, self._connection.fetchval, statement.sql, *arguments)

    async def execute(self, statement: Statement, *arguments: object) -> int:
        """How many rows the statement touched."""
        tag = await self._ask(statement.name, self._connection.execute, statement.sql, *arguments)
        count = tag.rpartition(" ")[2]
        return int(count) if count.isdecimal() else 0

    async def run_script(self, name: str, script: str, *, timeout_seconds: float) -> None:
        """Several statements in one text, for migrations: they take no arguments."""
        await self._ask(name, self._connection.execute, script, timeout=timeout_seconds)

    async def begin(self) -> None:
        # Nothing is at stake yet: a connection lost here has committed nothing.
        self._in_transaction = True
        await self._ask("begin", self._connection.execute, "begin")

    async def commit(self) -> None:
        """End the transaction for good, or raise `CommitUnknown` when nobody can say."""
        self._in_transaction = False
        tag = await self._ask("commit", self._connection.execute, "commit")
        if tag != "COMMIT":
            # The server answers ROLLBACK, and no error, when a statement had failed before.
            raise StatementFailed("the transaction had already failed", "25P02", "commit")

    async def roll_back(self) -> None:
        """Undo; a connection that cannot even do that is closed, which undoes it as well."""
        self._in_transaction = False
        try:
            await self._connection.execute("rollback")
        except DRIVER_ERRORS:
            self._drop()
        except BaseException:
            self._drop()
            raise

    async def _ask(
        self,
        name: str,
        ask: Callable[..., Awaitable[Result]],
        *arguments: object,
        **options: object,
    ) -> Result:
        try:
            return await ask(*arguments, **options)
        except DRIVER_ERRORS as error:
            failure = statement_failed(
                error,
                self.url,
                statement=name,
                lost=isinstance(error, OSError) or self._is_gone(),
                committing=not self._in_transaction,
            )
            if isinstance(failure, DatabaseUnreachable | CommitUnknown):
                self._drop()
            # The driver's own words may quote arguments and rows, which no log may show.
            raise failure from None

    def _is_gone(self) -> bool:
        try:
            return self._connection.is_closed()
        except asyncpg.InterfaceError:  # the pool has already taken a broken connection back
            return True

    def _drop(self) -> None:
        """Close without a farewell: on a dead line even that would wait."""
        with suppress(asyncpg.InterfaceError):
            self._connection.terminate()


@asynccontextmanager
async def transaction(session: Session) -> AsyncIterator[None]:
    """All that the block does, or nothing of it."""
    await session.begin()
    try:
        yield
    except BaseException:
        await session.roll_back()
        raise
    await session.commit()
