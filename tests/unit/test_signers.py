"""Who signs for a tenant: its keys are asked for once in a while, and outlast the database."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from foliot.core.signatures import SIGNATURE, TIMESTAMP, verify
from foliot.runtime.envelope import UnknownKey
from foliot.runtime.server_time import seconds_of
from foliot.store.errors import DatabaseUnreachable
from foliot.store.signing_keys import OpenedSigningKey, OpenedSigningKeys
from foliot.testing.callbacks import a_call
from foliot.testing.clock import ManualClock
from foliot.testing.rows import NOW
from foliot.worker.http.requests import Sign
from foliot.worker.http.signers import REMEMBER_SECONDS, Signers

OLD, NEW = bytes(32), bytes(range(32))
TENANT, OTHER = UUID(int=1), UUID(int=2)
TASK = a_call("https://example.com")
AT = int(seconds_of(NOW))


class Keys:
    """What a database would say."""

    def __init__(self) -> None:
        self.opened = OpenedSigningKeys((OpenedSigningKey(OLD, None),), NOW)
        self.error: Exception | None = None
        self.asked: list[UUID] = []

    async def read(self, tenant_id: UUID) -> OpenedSigningKeys:
        self.asked.append(tenant_id)
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return self.opened


def present(sign: Sign | None) -> Sign:
    assert sign is not None
    return sign


async def test_many_at_once_ask_once_for_each_tenant() -> None:
    keys, clock = Keys(), ManualClock()
    signers = Signers(keys.read, clock)
    await asyncio.gather(*(signers.of(each) for each in (TENANT, OTHER) * 20))
    assert sorted(keys.asked) == [TENANT, OTHER]
    clock.seconds += REMEMBER_SECONDS
    await asyncio.gather(*(signers.of(TENANT) for _ in range(20)))
    assert len(keys.asked) == 3


async def test_the_time_is_that_of_the_database_moved_on() -> None:
    keys, clock = Keys(), ManualClock()
    sign = present(await Signers(keys.read, clock).of(TENANT))
    clock.seconds += 4
    headers = dict(sign(TASK, b"body"))
    assert headers[TIMESTAMP] == str(AT + 4)
    assert verify([OLD], headers, b"body", AT + 4) == str(TASK.execution_id)


async def test_a_key_signs_no_longer_than_to_its_end() -> None:
    keys, clock = Keys(), ManualClock()
    ends_at = NOW + timedelta(seconds=3)
    keys.opened = OpenedSigningKeys(
        (OpenedSigningKey(NEW, None), OpenedSigningKey(OLD, ends_at)), NOW
    )
    sign = present(await Signers(keys.read, clock).of(TENANT))
    assert len(sign(TASK, b"")[SIGNATURE].split()) == 2
    clock.seconds += 3
    headers = dict(sign(TASK, b""))
    assert len(headers[SIGNATURE].split()) == 1
    assert verify([NEW], headers, b"", AT)


async def test_what_was_known_holds_while_the_database_is_away() -> None:
    keys, clock = Keys(), ManualClock()
    signers = Signers(keys.read, clock)
    keys.error = DatabaseUnreachable("postgresql://nowhere", "gone")
    with pytest.raises(DatabaseUnreachable):
        await signers.of(TENANT)
    keys.error = None
    await signers.of(TENANT)
    keys.error = DatabaseUnreachable("postgresql://nowhere", "gone")
    clock.seconds += 60
    assert present(await signers.of(TENANT))(TASK, b"")[TIMESTAMP] == str(AT + 60)


async def test_a_key_that_does_not_open_is_not_passed_over() -> None:
    keys, clock = Keys(), ManualClock()
    signers = Signers(keys.read, clock)
    await signers.of(TENANT)
    keys.error = UnknownKey("k9")
    clock.seconds += REMEMBER_SECONDS
    with pytest.raises(UnknownKey):
        await signers.of(TENANT)


async def test_without_a_key_nothing_is_signed() -> None:
    keys = Keys()
    keys.opened = OpenedSigningKeys((), NOW)
    assert await Signers(keys.read, ManualClock()).of(TENANT) is None
