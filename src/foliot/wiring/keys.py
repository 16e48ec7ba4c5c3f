"""The keys under which secrets are sealed, from the settings or from the folder of `foliot up`."""

from typing import Final

from foliot.runtime.envelope import Keyring
from foliot.runtime.key_file import kept_secret_keys, provide_secret_keys
from foliot.settings import Settings, variable
from foliot.store.database import Database
from foliot.store.sealed_rows import Resealed
from foliot.store.secrets import reseal_secrets
from foliot.store.signing_keys import reseal_signing_keys
from foliot.wiring.connections import connection_options

SECRET_KEYS: Final = variable("secret_keys")


def keyring_of(settings: Settings) -> Keyring | None:
    given = settings.secret_keys
    return None if given is None else Keyring.parse(given.get_secret_value())


def opening_keyring(settings: Settings) -> Keyring | None:
    """A worker's: one that was started beside a `foliot up` opens what is sealed there."""
    keyring = keyring_of(settings)
    if keyring is None and (kept := kept_secret_keys(settings.data_dir)) is not None:
        return Keyring.parse(kept)
    return keyring


async def reseal_all(settings: Settings, url: str, keyring: Keyring) -> Resealed:
    async with Database(url, connection_options(settings, "foliot db reseal")) as database:
        secrets = await reseal_secrets(database, keyring)
        return secrets + await reseal_signing_keys(database, keyring)


def local_keys(settings: Settings) -> dict[str, str]:
    """For the roles that seal or open; made once where none are given."""
    given = settings.secret_keys
    keys = given.get_secret_value() if given else provide_secret_keys(settings.data_dir)
    return {SECRET_KEYS: keys}
