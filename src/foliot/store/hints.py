"""Notifications of the database, as a way to be told that something may have changed.

Sending is a statement like any other and goes through a pooler. Listening is bound to a connection
of its own that leads straight to the server: through a pooler in transaction mode nothing comes.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import asyncpg

from foliot.store.connecting import ConnectionOptions, connect_arguments
from foliot.store.database import Database
from foliot.store.failures import DRIVER_ERRORS, connecting_failed
from foliot.store.statements import statement
from foliot.store.url import check_url, without_password

_SEND: Final = statement("hints/send")

# Called with the name under which it was sent, and the text.
Hear = Callable[[str, str], None]


async def send(database: Database, name: str, text: str) -> None:
    """Whoever listens to `name` now hears `text`."""
    await database.execute(_SEND, name, text)


@asynccontextmanager
async def listen(
    url: str,
    options: ConnectionOptions,
    names: Sequence[str],
    *,
    hear: Hear,
    lost: Callable[[], None],
) -> AsyncIterator[None]:
    """What is sent under one of `names` during the block is heard; `lost` is called when the
    connection ends."""
    check_url(url)
    shown = without_password(url)
    try:
        connection = await asyncpg.connect(url, **connect_arguments(options))
    except DRIVER_ERRORS as error:
        raise connecting_failed(error, shown) from None

    def pass_on(_: object, __: int, name: str, text: object) -> None:
        hear(name, str(text))

    def end(_: object) -> None:
        lost()

    try:
        connection.add_termination_listener(end)
        try:
            for name in names:
                await connection.add_listener(name, pass_on)
        except DRIVER_ERRORS as error:
            raise connecting_failed(error, shown) from None
        yield
    finally:
        with suppress(*DRIVER_ERRORS):
            await connection.close(timeout=options.connect_seconds)
