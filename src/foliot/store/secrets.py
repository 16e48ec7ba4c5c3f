"""Secrets at rest. A tenant writes and removes them and sees which there are; only a worker opens
one.

A row holds a sealed value and is bound to its tenant, name and version: moved elsewhere, or put
back under another version, it does not open. The keys are the operator's, never in the database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg

from foliot.core.errors import SecretNotFound
from foliot.core.ids import TenantId
from foliot.runtime.envelope import Keyring, Unopenable, context_of
from foliot.store.database import Database
from foliot.store.errors import TransactionConflict
from foliot.store.sealed_rows import Resealed, SealedRows, columns_of, reseal, sealed_of
from foliot.store.statements import statement

_COUNT: Final = statement("secrets/count")
_DELETE: Final = statement("secrets/delete")
_FIND: Final = statement("secrets/find")
_LIST_BY_NAME: Final = statement("secrets/list_by_name")
_LIST_SEALED: Final = statement("secrets/list_sealed")
_PUT: Final = statement("secrets/put")
_READ_SEALED: Final = statement("secrets/read_sealed")
_REWRAP: Final = statement("secrets/rewrap")

_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """What may be known of a secret."""

    name: str
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class OpenedSecrets:
    """The values that were asked for; those that are not there, and those that do not open, with
    the reason."""

    values: Mapping[str, str]
    missing: tuple[str, ...] = ()
    unopenable: Mapping[str, str] | None = None


async def put_secret(
    database: Database,
    keyring: Keyring,
    place: tuple[TenantId, str],
    value: str,
    now: datetime | None = None,
) -> StoredSecret:
    """A new secret, or the next version of one; `place` is whose it is and its name. From now on
    the old value is nowhere."""
    for _ in range(_TRIES):
        async with database.transaction(place[0]) as session:
            known = await session.fetch_row(_FIND, *place)
            version = 1 if known is None else known["version"] + 1
            sealed = keyring.seal(value.encode(), _context(*place, version))
            row = await session.fetch_row(_PUT, *place, version, *columns_of(sealed), now)
        if row is not None:
            return _stored(row)
    raise TransactionConflict("others write the same secret", "40001", _PUT.name)


async def find_secret(database: Database, tenant_id: TenantId, name: str) -> StoredSecret:
    async with database.transaction(tenant_id) as session:
        row = await session.fetch_row(_FIND, tenant_id, name)
    if row is None:
        raise SecretNotFound(name)
    return _stored(row)


async def list_secrets(
    database: Database, tenant_id: TenantId, *, after: str, limit: int
) -> list[StoredSecret]:
    """Those whose names come after `after`."""
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(_LIST_BY_NAME, tenant_id, after, limit)
    return [_stored(row) for row in rows]


async def count_secrets(database: Database, tenant_id: TenantId) -> int:
    async with database.transaction(tenant_id) as session:
        return int(await session.fetch_value(_COUNT, tenant_id))


async def delete_secret(database: Database, tenant_id: TenantId, name: str) -> StoredSecret:
    async with database.transaction(tenant_id) as session:
        row = await session.fetch_row(_DELETE, tenant_id, name)
    if row is None:
        raise SecretNotFound(name)
    return _stored(row)


async def open_secrets(
    database: Database, keyring: Keyring | None, tenant_id: TenantId, names: Sequence[str]
) -> OpenedSecrets:
    """For a worker alone. Without keys nothing opens."""
    rows = await database.fetch(_READ_SEALED, tenant_id, list(names))
    values: dict[str, str] = {}
    unopenable: dict[str, str] = {}
    for row in rows:
        name = row["name"]
        if keyring is None:
            unopenable[name] = "this worker has no keys: set FOLIOT_SECRET_KEYS"
            continue
        try:
            opened = keyring.open(sealed_of(row), _context(tenant_id, name, row["version"]))
        except Unopenable as refused:
            unopenable[name] = str(refused)
        else:
            values[name] = opened.decode()
    found = values.keys() | unopenable.keys()
    missing = tuple(name for name in names if name not in found)
    return OpenedSecrets(values, missing, unopenable)


async def reseal_secrets(database: Database, keyring: Keyring) -> Resealed:
    return await reseal(database, keyring, _ROWS)


def _context(tenant_id: UUID, name: str, version: int) -> bytes:
    return context_of("secret", tenant_id, name, version)


def _stored(row: asyncpg.Record) -> StoredSecret:
    return StoredSecret(row["name"], row["version"], row["created_at"], row["updated_at"])


_ROWS: Final = SealedRows(_LIST_SEALED, _REWRAP, "name", "", ("name", "version"), _context)
