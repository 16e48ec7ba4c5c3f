"""The API role: database, readiness and routes, served until a signal says stop."""

import logging
import signal
import socket

import uvicorn

from foliot.api.app import Parts, create_app
from foliot.api.readiness import DatabaseReadiness
from foliot.core.errors import InvalidInput
from foliot.runtime.chance import random_name
from foliot.runtime.clock import SystemClock
from foliot.runtime.listener import inherited, listen, url_of
from foliot.runtime.service import background, beside, run
from foliot.settings import Settings
from foliot.store.database import Database
from foliot.transport.port import Transport
from foliot.transport.postgres import PostgresTransport
from foliot.wiring.callbacks import callback_allow
from foliot.wiring.commands import allowed_programs
from foliot.wiring.connections import connection_options, required_url
from foliot.wiring.keys import keyring_of

log = logging.getLogger(__name__)

FINISH_WITHIN_SECONDS = 5


def serve_api(settings: Settings, *, listen_fd: int | None = None) -> None:
    """The API role, until SIGTERM or SIGINT; requests under way are finished first."""
    database = Database(required_url(settings), connection_options(settings, "foliot api"))
    api_key = _required_key(settings)
    listener = _listener(settings, listen_fd)
    clock = SystemClock()
    readiness = DatabaseReadiness(database, clock)
    allow = callback_allow(settings)
    keyring = keyring_of(settings)
    hints = PostgresTransport(database, clock)
    parts = Parts(
        database,
        readiness,
        api_key,
        random_name,
        clock,
        callback_allow=allow,
        keyring=keyring,
        hints=hints,
        programs=allowed_programs(settings),
    )
    config = uvicorn.Config(
        create_app(parts),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=FINISH_WITHIN_SECONDS,
    )
    server = uvicorn.Server(config)

    def leave(*_: object) -> None:
        server.should_exit = True

    # uvicorn raises the signal again once it is done: with a handler of ours, the exit is clean.
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    run(_serve(server, listener, readiness, hints), config.get_loop_factory())


def _required_key(settings: Settings) -> str:
    """Without one nobody could be let in, or everybody would be."""
    if settings.api_key is None:
        hint = "set it to 16 or more random characters, or start everything with `foliot up`"
        raise InvalidInput("is not set", field="FOLIOT_API_KEY", hint=hint)
    return settings.api_key.get_secret_value()


def _listener(settings: Settings, listen_fd: int | None) -> socket.socket:
    if listen_fd is None:
        return listen(settings.host, settings.port)
    return inherited(listen_fd)


async def _serve(
    server: uvicorn.Server,
    listener: socket.socket,
    readiness: DatabaseReadiness,
    hints: Transport,
) -> None:
    log.info("listening on %s", url_of(listener))
    try:
        async with (
            background(readiness.watch(), name="watch the database"),
            beside(hints.run(), name="hints"),
        ):
            await server.serve(sockets=[listener])
    finally:
        await readiness.close()
    log.info("stopped")
