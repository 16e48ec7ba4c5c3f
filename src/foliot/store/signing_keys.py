"""The keys that a tenant's callbacks are signed with, sealed like its secrets.

The first is made when it is first needed. A new one signs together with those before it, until
those have come to their end: receivers have that long to learn it. A key is shown once, to who asks
for a new one; only a worker opens it afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg

from foliot.core.ids import TenantId
from foliot.runtime.chance import random_key
from foliot.runtime.envelope import Keyring, Unopenable, context_of
from foliot.store.database import Database
from foliot.store.errors import TransactionConflict
from foliot.store.sealed_rows import Resealed, SealedRows, columns_of, reseal, sealed_of
from foliot.store.statements import statement

_ADD: Final = statement("signing_keys/add")
_LIST_NUMBERS: Final = statement("signing_keys/list_numbers")
_LIST_SEALED: Final = statement("signing_keys/list_sealed")
_READ_SEALED: Final = statement("signing_keys/read_sealed")
_REWRAP: Final = statement("signing_keys/rewrap")

GRACE_SECONDS: Final = 86_400.0
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class StoredSigningKey:
    """What may be known of a key. Without an end it is the newest."""

    number: int
    created_at: datetime
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class OpenedSigningKey:
    key: bytes
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class OpenedSigningKeys:
    """The newest first; `now` is the database's time when they were read."""

    keys: tuple[OpenedSigningKey, ...]
    now: datetime


class NoKeyring(Unopenable):
    """There are signing keys, and this process was given nothing to open them with."""

    def __str__(self) -> str:
        return "this worker has no keys: set FOLIOT_SECRET_KEYS"


async def rotate_signing_key(
    database: Database,
    keyring: Keyring,
    tenant_id: TenantId,
    *,
    grace_seconds: float = GRACE_SECONDS,
    now: datetime | None = None,
) -> tuple[StoredSigningKey, bytes]:
    """A new key; those before it sign for `grace_seconds` more."""
    for _ in range(_TRIES):
        key = random_key()
        async with database.transaction(tenant_id) as session:
            known = await session.fetch(_LIST_NUMBERS, tenant_id)
            number = 1 + (known[0]["number"] if known else 0)
            columns = columns_of(keyring.seal(key, _context(tenant_id, number)))
            row = await session.fetch_row(_ADD, tenant_id, number, *columns, grace_seconds, now)
        if row is not None:
            return StoredSigningKey(*row), key
    raise TransactionConflict("others make signing keys too", "40001", _ADD.name)


async def list_signing_keys(database: Database, tenant_id: TenantId) -> list[StoredSigningKey]:
    """The newest first."""
    async with database.transaction(tenant_id) as session:
        return [StoredSigningKey(*row) for row in await session.fetch(_LIST_NUMBERS, tenant_id)]


async def open_signing_keys(
    database: Database,
    keyring: Keyring | None,
    tenant_id: TenantId,
    now: datetime | None = None,
) -> OpenedSigningKeys:
    """For a worker alone: those that sign now. The first is made here. Without a keyring a tenant
    that has none yet stays without; the keys of one that has some are not passed over: raises
    Unopenable."""
    rows = await database.fetch(_READ_SEALED, tenant_id, now)
    if rows[0]["number"] is None and keyring is not None:
        columns = columns_of(keyring.seal(random_key(), _context(tenant_id, 1)))
        await database.fetch_row(_ADD, tenant_id, 1, *columns, GRACE_SECONDS, now)
        rows = await database.fetch(_READ_SEALED, tenant_id, now)
    found = [row for row in rows if row["number"] is not None]
    if found and keyring is None:
        raise NoKeyring
    keys = () if keyring is None else _opened(keyring, tenant_id, found)
    return OpenedSigningKeys(keys, rows[0]["moment"])


async def reseal_signing_keys(database: Database, keyring: Keyring) -> Resealed:
    return await reseal(database, keyring, _ROWS)


def _opened(
    keyring: Keyring, tenant_id: TenantId, rows: Sequence[asyncpg.Record]
) -> tuple[OpenedSigningKey, ...]:
    return tuple(
        OpenedSigningKey(
            keyring.open(sealed_of(row), _context(tenant_id, row["number"])), row["ends_at"]
        )
        for row in rows
    )


def _context(tenant_id: UUID, number: int) -> bytes:
    return context_of("signing key", tenant_id, number)


_ROWS: Final = SealedRows(_LIST_SEALED, _REWRAP, "number", 0, ("number",), _context)
