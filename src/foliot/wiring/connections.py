"""From the settings to how a process connects."""

from foliot.core.errors import InvalidInput
from foliot.settings import Settings
from foliot.store.connecting import ConnectionOptions


def connection_options(settings: Settings, application_name: str) -> ConnectionOptions:
    """A pooler in transaction mode carries no prepared statement from one transaction to the
    next: behind one, none is kept."""
    prepare = settings.database_pooler != "transaction"
    return ConnectionOptions(prepare=prepare, application_name=application_name)


def required_url(settings: Settings) -> str:
    """The address of a database that is not ours to bring."""
    if settings.database_url is None:
        hint = "set it to a PostgreSQL 15 or newer, or start everything with `foliot up`"
        raise InvalidInput("is not set", field="FOLIOT_DATABASE_URL", hint=hint)
    return settings.database_url.get_secret_value()
