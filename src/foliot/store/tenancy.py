"""The second wall between tenants: a transaction on behalf of one sees no row of another.

The first wall is the `where tenant_id = …` of every statement. Behind it the server looks again:
the transaction runs as a role that row-level security holds to one tenant's rows, and the engine's
own work runs as the owner of the tables, whom it does not hold.
"""

from typing import Final
from uuid import UUID

from foliot.store.session import Session
from foliot.store.statements import statement

_ENTER_TENANT: Final = statement("tenants/enter_tenant")

TENANT_ROLE: Final = "foliot_tenant"


async def enter_tenant(session: Session, tenant_id: UUID) -> None:
    """Be this tenant until the transaction ends, however it ends."""
    await session.execute(_ENTER_TENANT, tenant_id)
