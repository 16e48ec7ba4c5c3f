"""Where the machine plays: a database with lanes and tenants, and several ways into it."""

import asyncio
from collections import Counter
from typing import Final
from uuid import UUID

from foliot.core.ids import TenantId
from foliot.core.model import HandlerTarget
from foliot.store.database import Database
from foliot.store.lanes import lane_of
from foliot.testing.jobs import new_job
from foliot.testing.rows import DEFAULT_TENANT, make_tenant

CONNECTIONS: Final = 3
QUEUES: Final = ("bulk", "default")
HANDLERS: Final = ("mail", "work")
TENANTS: Final = {
    DEFAULT_TENANT: 10.0,
    TenantId(UUID(int=2)): 3.0,
    TenantId(UUID(int=3)): 1.0,
}


class Ground:
    """`effects` is what was brought about there; `disagreement` the last one and what led to it."""

    def __init__(self, runner: asyncio.Runner, url: str) -> None:
        self.runner = runner
        self.databases = [Database(url) for _ in range(CONNECTIONS)]
        self.lanes: dict[tuple[str, str], int] = {}
        self.effects: Counter[str] = Counter()
        self.disagreement = "none"

    async def open(self) -> None:
        for database in self.databases:
            await database.open()
        for tenant_id, weight in list(TENANTS.items())[1:]:
            await make_tenant(self.databases[0], id=tenant_id, weight=weight)
        for queue in QUEUES:
            for handler in HANDLERS:
                job = new_job(queue=queue, target=HandlerTarget(handler))
                self.lanes[queue, handler] = await lane_of(self.databases[0], job)

    async def close(self) -> None:
        for database in self.databases:
            await database.close()
