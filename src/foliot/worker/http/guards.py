"""Which guard stands before whose callbacks: the operator's list, and what is open to the tenant.

What is open to a tenant is read when first needed and remembered for a few seconds. Tenants with
the same openings share a guard, and so the connections behind it; nearly all of them have none.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from foliot.core.allow_list import AllowList
from foliot.runtime.clock import Clock
from foliot.store.errors import DatabaseError
from foliot.worker.http.guard import Guard, Lookup
from foliot.worker.http.lookup import MachineLookup

REMEMBER_SECONDS: Final = 5.0
TENANTS_MAX: Final = 10_000

ReadOpenings = Callable[[UUID], Awaitable[AllowList]]


class Guards:
    """`allow` holds for every tenant; `read` tells what is open to one of them besides."""

    def __init__(
        self, allow: AllowList, read: ReadOpenings, clock: Clock, lookup: Lookup | None = None
    ) -> None:
        self._allow = allow
        self._read = read
        self._clock = clock
        self._lookup = lookup or MachineLookup()
        self._known: OrderedDict[UUID, tuple[float, Guard]] = OrderedDict()
        self._by_list: dict[AllowList, Guard] = {}
        self._first = asyncio.Lock()

    async def of(self, tenant_id: UUID) -> Guard:
        """The same object for the same list. Raises DatabaseError if nothing is known and nothing
        can be read; what was known holds until it can."""
        known = self._known.get(tenant_id)
        if known is None:
            async with self._first:
                known = self._known.get(tenant_id)
                return known[1] if known else await self._renew(tenant_id)
        read_at, guard = known
        now = self._clock.monotonic()
        if now - read_at < REMEMBER_SECONDS:
            return guard
        self._known[tenant_id] = (now, guard)  # one asks, the others go by what they know
        try:
            return await self._renew(tenant_id)
        except DatabaseError:
            return guard

    async def _renew(self, tenant_id: UUID) -> Guard:
        allow = self._allow.joined(await self._read(tenant_id))
        guard = self._by_list.setdefault(allow, Guard(allow, self._lookup))
        self._known[tenant_id] = (self._clock.monotonic(), guard)
        self._known.move_to_end(tenant_id)
        if len(self._known) > TENANTS_MAX:
            self._known.popitem(last=False)
        return guard
