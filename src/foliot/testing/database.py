"""Databases by the dozen: one is migrated, every test gets a copy of it within milliseconds.

Nothing is dropped: the whole server is thrown away in the end.
"""

from itertools import count
from typing import Final

import asyncpg

from foliot.embedded.roles import provide_tenant_role
from foliot.runtime.clock import SystemClock
from foliot.store.migrate import migrate
from foliot.store.safety import LIMITS
from foliot.store.statements import Statement
from foliot.testing.server import ThrowawayServer

ROLE: Final = "foliot"
TEMPLATE: Final = "foliot_template"


def sql(text: str) -> Statement:
    """A statement that has no file, for tests only."""
    return Statement(name="test", sql=text)


class DatabaseFactory:
    """A throw-away server and the databases on it."""

    def __init__(self, server: ThrowawayServer | None = None) -> None:
        self.server = server or ThrowawayServer()
        self._numbers = count(1)

    @property
    def admin_url(self) -> str:
        return self.server.admin_url

    async def start(self) -> None:
        await self.server.start()
        admin = await asyncpg.connect(self.admin_url)
        try:
            await admin.execute(f"create role {ROLE} login")
            await provide_tenant_role(admin)
            await admin.execute(f"create database {TEMPLATE} owner {ROLE}")
        finally:
            await admin.close()
        await migrate(self.server.url(TEMPLATE), SystemClock())

    async def stop(self) -> None:
        await self.server.stop()

    async def create(self) -> str:
        """The URL of a fresh, migrated database."""
        return self.server.pooled_url(await self._create(TEMPLATE))

    async def create_empty(self, *, pooled: bool = False) -> str:
        """The URL of a database that has not been migrated yet; straight to it unless `pooled`."""
        name = await self._create("template0")
        return self.server.pooled_url(name) if pooled else self.server.url(name)

    async def _create(self, template: str) -> str:
        name = f"test_{next(self._numbers)}"
        admin = await asyncpg.connect(self.admin_url)
        try:
            # Copying files needs no write-ahead log; with fsync off nothing waits for the disk.
            await admin.execute(
                f"create database {name} template {template} owner {ROLE} strategy file_copy"
            )
            if template == TEMPLATE:
                await self._set_limits(admin, name)
        finally:
            await admin.close()
        return name

    async def _set_limits(self, admin: asyncpg.Connection, database: str) -> None:
        """A copy has the template's tables, but the role's defaults are kept by database."""
        known = await admin.fetch("select name from pg_settings where name = any($1)", list(LIMITS))
        change = f"alter role {ROLE} in database {database} set"
        await admin.execute(";".join(f"{change} {name} = {LIMITS[name]}" for (name,) in known))
