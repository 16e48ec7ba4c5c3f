"""Signing keys are made on first need, replaced without a gap, and readable by nobody at rest."""

import asyncio
from datetime import datetime, timedelta

import pytest

from foliot.core.signatures import KEY_BYTES_MIN
from foliot.runtime.envelope import Keyring, UnknownKey, Unopenable
from foliot.store.database import Database
from foliot.store.errors import StatementFailed
from foliot.store.signing_keys import (
    GRACE_SECONDS,
    list_signing_keys,
    open_signing_keys,
    reseal_signing_keys,
    rotate_signing_key,
)
from foliot.testing.database import sql
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_tenant

RING = Keyring([("k1", bytes(32))])
BOTH = Keyring([("k2", bytes(range(32))), ("k1", bytes(32))])
NEW = Keyring([("k2", bytes(range(32)))])
ROWS = sql("select * from foliot.signing_keys order by tenant_id, number")


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


async def keys_at(database: Database, now: datetime, ring: Keyring = RING) -> list[bytes]:
    opened = await open_signing_keys(database, ring, DEFAULT_TENANT, now)
    assert opened.now == now
    return [each.key for each in opened.keys]


async def test_the_first_key_is_made_when_it_is_needed_and_stays(database: Database) -> None:
    (key,) = await keys_at(database, NOW)
    assert len(key) >= KEY_BYTES_MIN
    assert await keys_at(database, later(9)) == [key]
    (row,) = await database.fetch(ROWS)
    assert key not in row["ciphertext"]


async def test_of_many_that_need_it_at_once_all_have_the_same(
    database: Database, database_url: str
) -> None:
    async with Database(database_url) as other:
        found = await asyncio.gather(*(keys_at(each, NOW) for each in (database, other) * 5))
    assert len({tuple(keys) for keys in found}) == 1


async def test_each_tenant_has_its_own(database: Database) -> None:
    other = await make_tenant(database)
    theirs = await open_signing_keys(database, RING, other, NOW)
    assert await keys_at(database, NOW) != [each.key for each in theirs.keys]


async def test_a_new_key_signs_beside_the_old_one_for_a_day(database: Database) -> None:
    (old,) = await keys_at(database, NOW)
    stored, new = await rotate_signing_key(database, RING, DEFAULT_TENANT, now=NOW)
    assert (stored.number, stored.ends_at) == (2, None)
    assert await keys_at(database, later(GRACE_SECONDS - 1)) == [new, old]
    assert await keys_at(database, later(GRACE_SECONDS)) == [new]
    first, second = reversed(await list_signing_keys(database, DEFAULT_TENANT))
    assert (first.ends_at, second.ends_at) == (later(GRACE_SECONDS), None)


async def test_a_key_that_leaked_can_be_ended_at_once(database: Database) -> None:
    await keys_at(database, NOW)
    _, new = await rotate_signing_key(database, RING, DEFAULT_TENANT, grace_seconds=0, now=NOW)
    assert await keys_at(database, NOW) == [new]


async def test_a_second_rotation_gives_an_old_key_no_more_time(database: Database) -> None:
    (old,) = await keys_at(database, NOW)
    await rotate_signing_key(database, RING, DEFAULT_TENANT, now=NOW)
    await rotate_signing_key(database, RING, DEFAULT_TENANT, now=later(100))
    assert old in await keys_at(database, later(GRACE_SECONDS - 1))
    assert old not in await keys_at(database, later(GRACE_SECONDS))


async def test_five_sign_at_the_most(database: Database) -> None:
    made = [
        (await rotate_signing_key(database, RING, DEFAULT_TENANT, now=later(n)))[1]
        for n in range(8)
    ]
    assert await keys_at(database, later(9)) == made[:2:-1]


async def test_rotations_at_once_make_a_key_each(database: Database) -> None:
    made = await asyncio.gather(
        *(rotate_signing_key(database, RING, DEFAULT_TENANT, now=NOW) for _ in range(3))
    )
    assert sorted(stored.number for stored, _ in made) == [1, 2, 3]
    assert set(await keys_at(database, NOW)) == {key for _, key in made}
    listed = await list_signing_keys(database, DEFAULT_TENANT)
    assert [each.ends_at is None for each in listed] == [True, False, False]


async def test_without_keys_nothing_is_made_and_nothing_passed_over(database: Database) -> None:
    opened = await open_signing_keys(database, None, DEFAULT_TENANT, NOW)
    assert opened.keys == ()
    assert await database.fetch(ROWS) == []
    await keys_at(database, NOW)
    with pytest.raises(Unopenable, match="FOLIOT_SECRET_KEYS"):
        await open_signing_keys(database, None, DEFAULT_TENANT, NOW)
    with pytest.raises(UnknownKey):
        await keys_at(database, NOW, NEW)


async def test_a_key_moved_to_another_tenant_does_not_open(database: Database) -> None:
    await keys_at(database, NOW)
    other = await make_tenant(database)
    await database.execute(sql("update foliot.signing_keys set tenant_id = $1"), other)
    with pytest.raises(Unopenable):
        await open_signing_keys(database, RING, other, NOW)


async def test_signing_keys_change_to_another_key_with_the_secrets(database: Database) -> None:
    (key,) = await keys_at(database, NOW)
    await open_signing_keys(database, RING, await make_tenant(database), NOW)
    assert (await reseal_signing_keys(database, BOTH)).changed == 2
    assert await keys_at(database, NOW, NEW) == [key]
    assert (await reseal_signing_keys(database, BOTH)).changed == 0
    assert (await reseal_signing_keys(database, RING)).left == 2


async def test_a_tenant_cannot_read_what_is_sealed(database: Database) -> None:
    await keys_at(database, NOW)
    with pytest.raises(StatementFailed) as refused:
        async with database.transaction(DEFAULT_TENANT) as session:
            await session.fetch(ROWS)
    assert refused.value.sqlstate == "42501"
