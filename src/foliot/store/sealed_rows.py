"""Rows that hold a sealed value, whatever they are about: how one is read and written, and the
change of all of them to the newest key."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import asyncpg

from foliot.runtime.envelope import Keyring, Sealed, Unopenable
from foliot.store.database import Database
from foliot.store.statements import Statement

PAGE_ROWS: Final = 100
_FIRST: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Resealed:
    """`left` counts rows that do not open and stay as they are."""

    changed: int = 0
    left: int = 0

    def __add__(self, other: "Resealed") -> "Resealed":
        return Resealed(self.changed + other.changed, self.left + other.left)


@dataclass(frozen=True, slots=True)
class SealedRows:
    """One table of them: the statements that page and rewrap it, the second part of its order
    (after the tenant) with a value below all others, and what a row is bound to besides."""

    page: Statement
    rewrap: Statement
    order: str
    lowest: str | int
    bound_by: tuple[str, ...]
    context: Callable[..., bytes]


def sealed_of(row: asyncpg.Record) -> Sealed:
    return Sealed(row["key_id"], row["nonce"], row["ciphertext"])


def columns_of(sealed: Sealed) -> tuple[object, ...]:
    return (sealed.key_id, sealed.nonce, sealed.ciphertext)


async def reseal(database: Database, keyring: Keyring, rows: SealedRows) -> Resealed:
    """Put every row of every tenant under the newest key, page by page. Whoever reads meanwhile
    finds it under one or the other; what is written meanwhile is under the newest anyway."""
    changed = left = 0
    place: tuple[object, object] = (_FIRST, rows.lowest)
    while page := await database.fetch(rows.page, *place, PAGE_ROWS):
        for row in page:
            if row["key_id"] == keyring.newest:
                continue
            try:
                changed += await _rewrap(database, keyring, rows, row)
            except Unopenable:
                left += 1
        place = (page[-1]["tenant_id"], page[-1][rows.order])
    return Resealed(changed, left)


async def _rewrap(
    database: Database, keyring: Keyring, rows: SealedRows, row: asyncpg.Record
) -> int:
    key = (row["tenant_id"], *(row[name] for name in rows.bound_by))
    sealed = keyring.rewrap(sealed_of(row), rows.context(*key))
    return await database.execute(rows.rewrap, *key, row["nonce"], *columns_of(sealed))
