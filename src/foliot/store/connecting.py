"""How we connect: the timeouts, one connection outside the pool, and patience with a database
that is not there yet."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import asyncpg

from foliot.runtime.clock import Clock
from foliot.store.errors import DatabaseRefused, DatabaseUnreachable
from foliot.store.failures import DRIVER_ERRORS, connecting_failed
from foliot.store.session import PooledConnection, Session, prepare_connection
from foliot.store.url import check_url, without_password

log = logging.getLogger(__name__)

OLDEST_SERVER: Final = 15
FIRST_DELAY_SECONDS: Final = 0.2
LONGEST_DELAY_SECONDS: Final = 5.0


@dataclass(frozen=True)
class ConnectionOptions:
    """The server's own limits (5 s a statement) come first; these are for a server or a network
    that no longer answers at all."""

    connect_seconds: float = 5.0
    command_seconds: float = 10.0
    acquire_seconds: float = 10.0
    max_connections: int = 10
    prepare: bool = True  # False behind a pooler that does not carry prepared statements over
    application_name: str = "foliot"
    warn: bool = True  # of missing safety; one pool of a process is enough to say it


DEFAULTS: Final = ConnectionOptions()


def connect_arguments(options: ConnectionOptions) -> dict[str, Any]:
    """What every connection is opened with. `application_name` is the one setting a pooler lets
    through; all others belong to the role."""
    return {
        "timeout": options.connect_seconds,
        "command_timeout": options.command_seconds,
        "statement_cache_size": 256 if options.prepare else 0,
        "connection_class": PooledConnection,
        "server_settings": {"application_name": options.application_name},
    }


@asynccontextmanager
async def connect(url: str, options: ConnectionOptions = DEFAULTS) -> AsyncIterator[Session]:
    """A session on a connection of its own, closed at the end."""
    check_url(url)
    shown = without_password(url)
    try:
        connection = await asyncpg.connect(url, **connect_arguments(options))
    except DRIVER_ERRORS as error:
        raise connecting_failed(error, shown) from None
    try:
        try:
            await prepare_connection(connection)
        except DRIVER_ERRORS as error:
            raise connecting_failed(error, shown) from None
        session = Session(connection, shown)
        check_version(session.server_version, session.server_encoding, shown)
        yield session
    finally:
        with suppress(*DRIVER_ERRORS):
            await connection.close(timeout=options.connect_seconds)


def check_version(version: int, encoding: str, url: str) -> None:
    """Refuse what we would fail on later, at a worse moment."""
    if version < OLDEST_SERVER:
        hint = f"use PostgreSQL {OLDEST_SERVER} or newer"
        raise DatabaseRefused(url, f"it is PostgreSQL {version}", hint)
    if encoding != "UTF8":
        raise DatabaseRefused(url, f"its encoding is {encoding}", "create it with encoding UTF8")


def growing_delays() -> Iterator[float]:
    """0.2 s, doubling up to 5 s, for ever."""
    delay = FIRST_DELAY_SECONDS
    while True:
        yield delay
        delay = min(delay * 2, LONGEST_DELAY_SECONDS)


async def wait_until_reachable(
    url: str,
    clock: Clock,
    *,
    patience_seconds: float | None = None,
    options: ConnectionOptions = DEFAULTS,
) -> None:
    """Return once the database answers; say why not, one line for each new reason.

    Without `patience_seconds` it waits for ever; with it, the last reason is raised in the end.
    """
    began = clock.monotonic()
    said = ""
    for delay in growing_delays():
        try:
            async with connect(url, options):
                break
        except DatabaseUnreachable as absence:
            waited = clock.monotonic() - began
            if patience_seconds is not None and waited + delay > patience_seconds:
                raise
            if absence.reason != said:
                said = absence.reason
                log.warning("%s; trying again", absence)
        await clock.sleep(delay)
    if said:
        log.info("database %s is reachable", without_password(url))
