"""Tenants as rows: whose everything else is, and what the operator has agreed with each."""

import logging
from typing import Final
from uuid import UUID

from foliot.core.allow_list import CLOSED, AllowList, read_allow_list
from foliot.core.errors import InvalidInput
from foliot.core.ids import TenantId
from foliot.store.database import Database
from foliot.store.statements import statement

log = logging.getLogger(__name__)

_FIND_TENANT: Final = statement("tenants/find_tenant")
_READ_CALLBACK_ALLOW: Final = statement("tenants/read_callback_allow")

# The tenant of those who have no tenants; the migrations make it.
DEFAULT_TENANT: Final = TenantId(UUID("00000000-0000-8000-8000-000000000001"))


async def is_tenant(database: Database, tenant_id: TenantId) -> bool:
    return bool(await database.fetch_value(_FIND_TENANT, tenant_id))


async def read_callback_allow(database: Database, tenant_id: TenantId) -> AllowList:
    """What is open to this tenant's callbacks; a list that cannot be read opens nothing."""
    entries: list[str] = await database.fetch_value(_READ_CALLBACK_ALLOW, tenant_id) or []
    try:
        return read_allow_list(entries, f"callback_allow of tenant {tenant_id}")
    except InvalidInput as unreadable:
        log.warning("%s; nothing is opened by it", unreadable)
        return CLOSED
