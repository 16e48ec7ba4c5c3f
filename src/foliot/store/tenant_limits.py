"""What tenants' quotas say about running and starting becomes limits.

The quotas in a tenant's row are what counts. Schedulers walk over the tenants, a page at a time,
and put what differs, so it does not matter who changed a quota or whether he told anybody.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.errors import InvalidInput
from foliot.core.ids import TenantId
from foliot.core.limits import limits_of_tenant, tenant_limit
from foliot.store.admitting import StoredLimit, put_limits, stored_limits
from foliot.store.database import Database
from foliot.store.limit_changes import note_changes
from foliot.store.statements import statement

_LIST_QUOTAS: Final = statement("tenants/list_quotas")
_LOCK_QUOTAS: Final = statement("tenants/lock_quotas")

BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class QuotaPage:
    """Tenants whose limits are not as their quotas say, those whose quotas say nothing that could
    be kept, and where to go on: None when the walk is at its end."""

    changed: tuple[TenantId, ...]
    unreadable: tuple[tuple[TenantId, InvalidInput], ...]
    after: TenantId | None


async def list_changed(
    database: Database, after: TenantId | None = None, *, batch: int = BATCH
) -> QuotaPage:
    rows = await database.fetch(_LIST_QUOTAS, after, batch)
    changed, unreadable = [], []
    for row in rows:
        tenant_id = TenantId(row["id"])
        known = StoredLimit(row["max_running"], row["rate_count"], row["rate_seconds"])
        try:
            limits = stored_limits(limits_of_tenant(tenant_id, row["quotas"]))
        except InvalidInput as error:
            unreadable.append((tenant_id, error))
            continue
        if next(iter(limits.values()), StoredLimit()) != known:
            changed.append(tenant_id)
    more = len(rows) == batch
    return QuotaPage(tuple(changed), tuple(unreadable), TenantId(rows[-1]["id"]) if more else None)


async def apply_quotas(
    database: Database, tenant_id: TenantId, now: datetime | None = None
) -> None:
    """Make the limits of one tenant what its quotas say; what waits comes under them."""
    async with database.transaction() as session:
        quotas = await session.fetch_value(_LOCK_QUOTAS, tenant_id)
        limits = limits_of_tenant(tenant_id, quotas or {})
        await note_changes(session, limits, now)
        await put_limits(session, limits, lifted=[tenant_limit(tenant_id, 0).key])
