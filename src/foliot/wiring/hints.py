"""By what the processes of one installation hint at work to each other: the database's own
notifications."""

import logging

from foliot.runtime.clock import Clock
from foliot.settings import Settings
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.transport.port import Transport
from foliot.transport.postgres import DirectLine, PostgresTransport

log = logging.getLogger(__name__)


def hearing_transport(
    settings: Settings, url: str, database: Database, clock: Clock, application_name: str
) -> Transport:
    """Sends through `database`, and listens on the straight way to what is at `url`."""
    direct = direct_url(settings, url)
    if direct is None:
        log.info("polling: without FOLIOT_DATABASE_DIRECT_URL no hints come through a pooler")
        return PostgresTransport(database, clock)
    options = ConnectionOptions(application_name=application_name)
    return PostgresTransport(database, clock, DirectLine(direct, options))


def direct_url(settings: Settings, url: str) -> str | None:
    """The straight way to the database at `url`, if one is known."""
    given, usual = settings.database_direct_url, settings.database_url
    if given is not None and usual is not None and usual.get_secret_value() == url:
        return given.get_secret_value()
    return url if settings.database_pooler == "none" else None
