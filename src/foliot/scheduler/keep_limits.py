"""Limits are what quotas and jobs say, count for rows that were there before them, and are used by
those who can run.

Any number of schedulers do this at once: whoever comes second finds nothing to do.
"""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.ids import TenantId
from foliot.store import limit_changes
from foliot.store.admitting import withdraw
from foliot.store.database import Database
from foliot.store.limit_changes import LimitChange, apply_page, end_change, list_changes
from foliot.store.tenant_limits import apply_quotas, list_changed
from foliot.transport.port import SILENCE, Matter, Publisher

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class KeptLimits:
    """How many tenants got other limits, how many rows came under one or were let go (or keys had
    it changed), and how many gave their slots back, because nobody is there to claim them."""

    tenants: int = 0
    rows: int = 0
    withdrawn: int = 0


class KeepLimits:
    name: Final = "keep limits"

    def __init__(
        self,
        database: Database,
        *,
        batch: int = limit_changes.BATCH,
        hints: Publisher = SILENCE,
    ) -> None:
        self._database = database
        self._hints = hints
        self._batch = batch
        self._after: TenantId | None = None
        self._told: set[TenantId] = set()
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> KeptLimits:
        """A page of the tenants, and every limit that is new or changed."""
        tenants = await self._keep_quotas(now)
        rows = 0
        for change in await list_changes(self._database, now):
            rows += await self._walk(change, now)
        return KeptLimits(tenants, rows, await withdraw(self._database, now))

    async def _keep_quotas(self, now: datetime | None) -> int:
        page = await list_changed(self._database, self._after)
        self._after = page.after
        for tenant_id in page.changed:
            await apply_quotas(self._database, tenant_id, now)
        for tenant_id, error in page.unreadable:
            if tenant_id not in self._told:
                log.warning("tenant %s keeps the limits it had: %s", tenant_id, error)
        self._told = {tenant_id for tenant_id, _ in page.unreadable}
        return len(page.changed)

    async def _walk(self, change: LimitChange, now: datetime | None) -> int:
        rows, after, passed_over = 0, None, False
        while True:
            page = await apply_page(self._database, change, after, batch=self._batch, now=now)
            rows += page.changed
            passed_over = passed_over or page.passed_over
            if page.queues:
                self._hints.publish(Matter.WORK, page.queues)
            after = page.after
            if after is None:
                break
        await end_change(self._database, change, now, passed_over=passed_over)
        return rows
