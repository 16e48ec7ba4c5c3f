"""How requests on behalf of a tenant are signed: under its keys, at the database's time.

Keys are read when first needed and remembered for a few seconds, so a new one signs everywhere
within that time. The time in a signature is the database's as it was told with the keys, moved on
by this process's own feeling for time: the machine's clock may be wrong.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

from foliot.core.signatures import sign
from foliot.runtime.clock import Clock
from foliot.runtime.server_time import seconds_of
from foliot.store.errors import DatabaseError
from foliot.store.signing_keys import OpenedSigningKeys
from foliot.worker.http.requests import Sign
from foliot.worker.tasks import Task

log = logging.getLogger(__name__)

REMEMBER_SECONDS: Final = 5.0
TENANTS_MAX: Final = 10_000

ReadKeys = Callable[[UUID], Awaitable[OpenedSigningKeys]]


class Signer:
    """One tenant's keys, as they were told at a moment of the clock."""

    def __init__(self, opened: OpenedSigningKeys, read_at: float, clock: Clock) -> None:
        self._opened = opened
        self.read_at = read_at
        self._clock = clock

    @property
    def signs(self) -> bool:
        return bool(self._opened.keys)

    def __call__(self, task: Task, body: bytes) -> Mapping[str, str]:
        now = self._opened.now + timedelta(seconds=self._clock.monotonic() - self.read_at)
        keys = [
            each.key for each in self._opened.keys if each.ends_at is None or each.ends_at > now
        ]
        message_id = task.message_id or str(task.execution_id)
        return sign(keys, message_id, int(seconds_of(now)), body)


class Signers:
    def __init__(self, read: ReadKeys, clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._known: OrderedDict[UUID, Signer] = OrderedDict()
        self._reading: dict[UUID, asyncio.Lock] = {}
        self._warned = False

    async def of(self, tenant_id: UUID) -> Sign | None:
        """None where nothing is signed. Raises Unopenable, and DatabaseError if nothing is known
        and nothing can be read; what was known holds until it can."""
        known = self._fresh(tenant_id) or await self._renewed(tenant_id)
        if known.signs:
            return known
        if not self._warned:
            self._warned = True
            log.warning("callbacks are sent unsigned: set FOLIOT_SECRET_KEYS to sign them")
        return None

    def _fresh(self, tenant_id: UUID) -> Signer | None:
        known = self._known.get(tenant_id)
        if known is None or self._clock.monotonic() - known.read_at >= REMEMBER_SECONDS:
            return None
        return known

    async def _renewed(self, tenant_id: UUID) -> Signer:
        """One asks for a tenant at a time: the others find what it was told."""
        lock = self._reading.setdefault(tenant_id, asyncio.Lock())
        try:
            async with lock:
                return self._fresh(tenant_id) or await self._renew(tenant_id)
        finally:
            if not lock.locked():
                self._reading.pop(tenant_id, None)

    async def _renew(self, tenant_id: UUID) -> Signer:
        read_at = self._clock.monotonic()
        try:
            signer = Signer(await self._read(tenant_id), read_at, self._clock)
        except DatabaseError:
            if (known := self._known.get(tenant_id)) is None:
                raise
            return known
        self._known[tenant_id] = signer
        self._known.move_to_end(tenant_id)
        if len(self._known) > TENANTS_MAX:
            self._known.popitem(last=False)
        return signer
