"""Secrets at rest: whose they are, which version, under which key, and what cannot be done."""

import asyncio
from datetime import timedelta

import pytest

from foliot.core.errors import SecretNotFound
from foliot.core.ids import TenantId
from foliot.runtime.envelope import Keyring
from foliot.store.database import Database
from foliot.store.sealed_rows import PAGE_ROWS, Resealed
from foliot.store.secrets import (
    count_secrets,
    delete_secret,
    find_secret,
    list_secrets,
    open_secrets,
    put_secret,
    reseal_secrets,
)
from foliot.testing.database import sql
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_tenant
from foliot.testing.running import until_blocked

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
RING = Keyring([("old", OLD)])
BOTH = Keyring([("new", NEW), ("old", OLD)])
ROWS = sql("select * from foliot.secrets order by tenant_id, name")


@pytest.fixture
async def other(database: Database) -> TenantId:
    return TenantId(await make_tenant(database))


async def put(database: Database, name: str, value: str, tenant: TenantId = DEFAULT_TENANT) -> int:
    return (await put_secret(database, RING, (tenant, name), value)).version


async def value_of(
    database: Database, name: str, ring: Keyring = RING, tenant: TenantId = DEFAULT_TENANT
) -> str:
    return (await open_secrets(database, ring, tenant, [name])).values[name]


async def reason_of(database: Database, name: str, ring: Keyring | None = RING) -> str:
    found = await open_secrets(database, ring, DEFAULT_TENANT, [name])
    assert (found.values, found.missing) == ({}, ())
    return (found.unopenable or {})[name]


async def test_a_secret_is_kept_sealed_and_opens_for_a_worker(database: Database) -> None:
    stored = await put_secret(database, RING, (DEFAULT_TENANT, "TOKEN"), "s3cret ä\n", NOW)
    assert (stored.name, stored.version) == ("TOKEN", 1)
    assert (stored.created_at, stored.updated_at) == (NOW, NOW)
    assert await value_of(database, "TOKEN") == "s3cret ä\n"
    (row,) = await database.fetch(ROWS)
    assert row["key_id"] == "old"
    assert b"s3cret" not in row["ciphertext"]


async def test_a_new_value_is_the_next_version_and_the_old_one_is_gone(database: Database) -> None:
    await put_secret(database, RING, (DEFAULT_TENANT, "TOKEN"), "one", NOW)
    later = NOW + timedelta(seconds=1)
    await put_secret(database, RING, (DEFAULT_TENANT, "TOKEN"), "two", later)
    assert await value_of(database, "TOKEN") == "two"
    found = await find_secret(database, DEFAULT_TENANT, "TOKEN")
    assert found.version == 2
    assert (found.created_at, found.updated_at) == (NOW, later)
    assert len(await database.fetch(ROWS)) == 1


async def test_many_who_write_at_once_all_count(database: Database) -> None:
    versions = await asyncio.gather(*(put(database, "TOKEN", f"v{n}") for n in range(4)))
    assert sorted(versions) == [1, 2, 3, 4]
    last = versions.index(4)
    assert await value_of(database, "TOKEN") == f"v{last}"


async def test_who_was_overtaken_while_writing_writes_the_next_version(database: Database) -> None:
    """Its version was taken between its look and its write."""
    await put(database, "TOKEN", "one")
    async with database.transaction() as first:
        await first.execute(sql("update foliot.secrets set version = 2"))
        slow = asyncio.ensure_future(put(database, "TOKEN", "mine"))
        await until_blocked(first)
    assert await slow == 3
    assert await value_of(database, "TOKEN") == "mine"


async def test_two_tenants_with_one_name_never_meet(database: Database, other: TenantId) -> None:
    await put(database, "TOKEN", "mine")
    await put(database, "TOKEN", "theirs", other)
    await put(database, "OTHER", "theirs too", other)
    assert await value_of(database, "TOKEN") == "mine"
    assert await value_of(database, "TOKEN", tenant=other) == "theirs"
    assert [s.name for s in await list_secrets(database, DEFAULT_TENANT, after="", limit=9)] == [
        "TOKEN"
    ]
    assert await count_secrets(database, other) == 2
    with pytest.raises(SecretNotFound):
        await delete_secret(database, DEFAULT_TENANT, "OTHER")
    with pytest.raises(SecretNotFound):
        await find_secret(database, DEFAULT_TENANT, "OTHER")
    assert (await open_secrets(database, RING, DEFAULT_TENANT, ["OTHER"])).missing == ("OTHER",)


async def test_a_list_goes_on_after_a_name(database: Database) -> None:
    for name in ("B", "A", "C_1", "C"):
        await put(database, name, "value")
    first = await list_secrets(database, DEFAULT_TENANT, after="", limit=2)
    rest = await list_secrets(database, DEFAULT_TENANT, after=first[-1].name, limit=9)
    assert [secret.name for secret in first + rest] == ["A", "B", "C", "C_1"]


async def test_what_is_deleted_is_gone_and_begins_anew(database: Database) -> None:
    await put(database, "TOKEN", "one")
    await put(database, "TOKEN", "two")
    assert (await delete_secret(database, DEFAULT_TENANT, "TOKEN")).version == 2
    with pytest.raises(SecretNotFound, match="TOKEN"):
        await delete_secret(database, DEFAULT_TENANT, "TOKEN")
    assert await database.fetch(ROWS) == []
    assert await put(database, "TOKEN", "three") == 1


async def test_several_are_read_at_once_and_the_missing_are_named(database: Database) -> None:
    await put(database, "A", "a")
    await put(database, "B", "b")
    found = await open_secrets(database, RING, DEFAULT_TENANT, ["B", "X", "A", "Y"])
    assert found.values == {"A": "a", "B": "b"}
    assert found.missing == ("X", "Y")


@pytest.mark.parametrize(
    "change",
    [
        "update foliot.secrets set ciphertext = overlay(ciphertext placing '\\x00' from 70)",
        "update foliot.secrets set ciphertext = '\\x00'",
        "update foliot.secrets set nonce = overlay(nonce placing '\\x00' from 3)",
        "update foliot.secrets set version = 7",
        "update foliot.secrets set name = 'TOKEN' where name = 'OTHER'",
        "update foliot.secrets set key_id = 'new'",
    ],
)
async def test_a_row_that_was_changed_does_not_open(database: Database, change: str) -> None:
    await put(database, "OTHER", "another value, long enough")
    if "'OTHER'" not in change:
        await put(database, "TOKEN", "a value that is long enough")
    await database.execute(sql(change))
    assert "its seal is broken" in await reason_of(database, "TOKEN", BOTH)


async def test_a_row_of_another_tenant_does_not_open(database: Database, other: TenantId) -> None:
    await put(database, "TOKEN", "theirs", other)
    await database.execute(sql("update foliot.secrets set tenant_id = $1"), DEFAULT_TENANT)
    assert "its seal is broken" in await reason_of(database, "TOKEN")


async def test_without_the_right_key_it_says_which_is_missing(database: Database) -> None:
    await put(database, "TOKEN", "value")
    assert "the key 'old'" in await reason_of(database, "TOKEN", Keyring([("new", NEW)]))
    assert "set FOLIOT_SECRET_KEYS" in await reason_of(database, "TOKEN", None)


async def test_all_secrets_come_under_the_newest_key(database: Database, other: TenantId) -> None:
    for n in range(PAGE_ROWS + 2):
        await put(database, f"S{n}", f"value {n}", other if n % 2 else DEFAULT_TENANT)
    await put_secret(database, BOTH, (DEFAULT_TENANT, "NEWER"), "new already")
    before = await find_secret(database, DEFAULT_TENANT, "S0")
    assert await reseal_secrets(database, BOTH) == Resealed(changed=PAGE_ROWS + 2)
    assert {row["key_id"] for row in await database.fetch(ROWS)} == {"new"}
    only_new = Keyring([("new", NEW)])
    assert await value_of(database, "S0", only_new) == "value 0"
    assert await value_of(database, "S1", only_new, other) == "value 1"
    assert await find_secret(database, DEFAULT_TENANT, "S0") == before
    assert await reseal_secrets(database, BOTH) == Resealed()


async def test_what_does_not_open_is_left_and_counted(database: Database) -> None:
    for name in ("A", "B", "C"):
        await put(database, name, "value")
    await database.execute(sql("update foliot.secrets set key_id = 'gone' where name = 'B'"))
    assert await reseal_secrets(database, BOTH) == Resealed(changed=2, left=1)
    kept = {row["name"]: row["key_id"] for row in await database.fetch(ROWS)}
    assert kept == {"A": "new", "B": "gone", "C": "new"}


async def test_whoever_reads_while_keys_change_reads_the_value(database: Database) -> None:
    for n in range(20):
        await put(database, f"S{n}", f"value {n}")
    names = [f"S{n}" for n in range(20)]
    changing = asyncio.gather(reseal_secrets(database, BOTH), reseal_secrets(database, BOTH))
    reads = 0
    while not changing.done() or reads == 0:
        found = await open_secrets(database, BOTH, DEFAULT_TENANT, names)
        assert found.values == {name: f"value {name[1:]}" for name in names}
        reads += 1
    first, second = await changing
    assert first.changed + second.changed == 20
    assert {row["key_id"] for row in await database.fetch(ROWS)} == {"new"}


async def test_a_value_written_while_keys_change_is_not_lost(database: Database) -> None:
    """The row was read, and changed before it was written back."""
    await put(database, "TOKEN", "old value")

    class Between(Database):
        async def execute(self, statement: object, *arguments: object) -> int:
            await put(database, "TOKEN", "new value")
            return await database.execute(statement, *arguments)  # type: ignore[arg-type]

        async def fetch(self, statement: object, *arguments: object) -> list[object]:  # type: ignore[override]
            return await database.fetch(statement, *arguments)  # type: ignore[arg-type,return-value]

    assert await reseal_secrets(Between("postgresql://nowhere/x"), BOTH) == Resealed()
    assert await value_of(database, "TOKEN") == "new value"
