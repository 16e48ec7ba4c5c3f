"""Guards of tenants: shared where lists are the same, renewed, and steadfast without a database."""

import asyncio
from uuid import UUID

import pytest

from foliot.core.allow_list import CLOSED, AllowList, read_allow_list
from foliot.store.errors import DatabaseUnreachable
from foliot.testing.clock import ManualClock
from foliot.worker.http import guards as guards_module
from foliot.worker.http.guards import REMEMBER_SECONDS, Guards

A, B, C = (UUID(int=n) for n in range(1, 4))
OWN = read_allow_list(["10.0.0.0/8"], "X")
EVERYBODYS = read_allow_list(["loopback"], "X")


class Tenants:
    """What the database would say."""

    def __init__(self, **lists: AllowList) -> None:
        self.lists = {UUID(int=ord(name) - ord("a") + 1): one for name, one in lists.items()}
        self.asked: list[UUID] = []
        self.is_away = False
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, tenant_id: UUID) -> AllowList:
        self.asked.append(tenant_id)
        await self.go.wait()
        if self.is_away:
            raise DatabaseUnreachable("postgresql://test", "it is away")
        return self.lists.get(tenant_id, CLOSED)


async def test_tenants_with_the_same_openings_share_a_guard() -> None:
    guards = Guards(EVERYBODYS, Tenants(c=OWN), ManualClock())
    a, b, c = [await guards.of(tenant) for tenant in (A, B, C)]
    assert a is b
    assert a is not c
    assert a.allow == EVERYBODYS
    assert c.allow == EVERYBODYS.joined(OWN)


async def test_what_is_open_is_read_again_after_a_while() -> None:
    clock, tenants = ManualClock(), Tenants(a=OWN)
    guards = Guards(CLOSED, tenants, clock)
    opened = await guards.of(A)
    tenants.lists = {}
    assert await guards.of(A) is opened
    clock.seconds += REMEMBER_SECONDS
    assert (await guards.of(A)).allow == CLOSED
    assert tenants.asked == [A, A]


async def test_without_a_database_what_was_known_holds() -> None:
    clock, tenants = ManualClock(), Tenants(a=OWN)
    guards = Guards(CLOSED, tenants, clock)
    known = await guards.of(A)
    tenants.is_away = True
    clock.seconds += REMEMBER_SECONDS
    assert await guards.of(A) is known
    with pytest.raises(DatabaseUnreachable):
        await guards.of(B)


async def test_many_ask_at_once_and_the_database_is_asked_once() -> None:
    clock, tenants = ManualClock(), Tenants()
    guards = Guards(CLOSED, tenants, clock)
    for _ in range(2):
        tenants.go.clear()
        asking = [asyncio.ensure_future(guards.of(A)) for _ in range(50)]
        await asyncio.wait(asking, timeout=0)
        tenants.go.set()
        assert len(set(await asyncio.gather(*asking))) == 1
        clock.seconds += REMEMBER_SECONDS
    assert tenants.asked == [A, A]


async def test_tenants_that_were_long_not_heard_of_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guards_module, "TENANTS_MAX", 2)
    tenants = Tenants()
    guards = Guards(CLOSED, tenants, ManualClock())
    for tenant in (A, B, C, C, A):
        await guards.of(tenant)
    assert tenants.asked == [A, B, C, A]
