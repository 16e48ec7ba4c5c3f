"""Tenants as rows: whose everything else is."""

from typing import Final
from uuid import UUID

from foliot.core.ids import TenantId
from foliot.store.database import Database
from foliot.store.statements import statement

_FIND_TENANT: Final = statement("tenants/find_tenant")

# The tenant of those who have no tenants; the migrations make it.
DEFAULT_TENANT: Final = TenantId(UUID("00000000-0000-8000-8000-000000000001"))


async def is_tenant(database: Database, tenant_id: TenantId) -> bool:
    return bool(await database.fetch_value(_FIND_TENANT, tenant_id))
