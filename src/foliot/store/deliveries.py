"""Completion callbacks: taken when they are due, tried, and what became of each try.

A row is written by the end that it tells of. Whoever takes it has it for the length of a lease; if
nothing is heard of it by then, it is due again: each is delivered at least once. What is recorded
counts only for the latest claim.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

import asyncpg

from foliot.core.delivery import Decision, Delivered, GivenUp
from foliot.core.ids import ExecutionId, TenantId
from foliot.core.model import Json
from foliot.core.states import ExecutionState
from foliot.store.database import Database
from foliot.store.statements import statement

_CLAIM: Final = statement("deliveries/claim")
_END_CLAIM: Final = statement("deliveries/end_claim")
_LIST: Final = statement("deliveries/list_of_execution")
_REDELIVER: Final = statement("deliveries/redeliver")

# Longer than a try can take, with everything around it.
LEASE_SECONDS: Final = 45.0


class DeliveryState(StrEnum):
    PENDING = "PENDING"
    DELIVERED = "DELIVERED"
    GIVEN_UP = "GIVEN_UP"


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """`attempt_number` of them were made before; `callback_url` as the job has it now."""

    execution_id: ExecutionId
    fence: int
    tenant_id: TenantId
    status: ExecutionState
    claim_number: int
    attempt_number: int
    age_seconds: float
    callback_url: str | None


@dataclass(frozen=True, slots=True)
class StoredDelivery:
    """`attempts`: the last ones, the newest first."""

    execution_id: ExecutionId
    status: ExecutionState
    created_at: datetime
    next_attempt_at: datetime
    attempt_number: int
    redelivered_at: datetime | None
    delivered_at: datetime | None
    given_up_at: datetime | None
    attempts: list[Json]

    @property
    def state(self) -> DeliveryState:
        if self.delivered_at is not None:
            return DeliveryState.DELIVERED
        return DeliveryState.PENDING if self.given_up_at is None else DeliveryState.GIVEN_UP


async def claim_deliveries(
    database: Database,
    limit: int,
    *,
    window_seconds: float | None = None,
    lease_seconds: float = LEASE_SECONDS,
    now: datetime | None = None,
) -> list[ClaimedDelivery]:
    """Up to `limit` that are due; with a window, only those that became so within it."""
    rows = await database.fetch(_CLAIM, limit, lease_seconds, window_seconds, now)
    return [_claimed(row) for row in rows]


async def end_claim(
    database: Database,
    claimed: ClaimedDelivery,
    decision: Decision,
    entry: Mapping[str, Json],
    now: datetime | None = None,
) -> bool:
    """Record a try; False if another has taken it since. `entry` is for the log."""
    match decision:
        case Delivered():
            state, delay = DeliveryState.DELIVERED, 0.0
        case GivenUp():
            state, delay = DeliveryState.GIVEN_UP, 0.0
        case _:
            state, delay = DeliveryState.PENDING, decision.delay_seconds
    return await _end(database, claimed, (state, delay, entry, now))


async def give_back(
    database: Database, claimed: ClaimedDelivery, delay_seconds: float, now: datetime | None = None
) -> bool:
    """It was not tried; it is due again after so long."""
    return await _end(database, claimed, (DeliveryState.PENDING, delay_seconds, None, now))


async def list_deliveries(
    database: Database, tenant_id: TenantId, execution_id: ExecutionId
) -> list[StoredDelivery]:
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(_LIST, execution_id, tenant_id)
    return [_stored(row) for row in rows]


async def redeliver(
    database: Database, tenant_id: TenantId, execution_id: ExecutionId, now: datetime | None = None
) -> None:
    """Deliver it again as soon as may be; one that is under way stays as it is."""
    async with database.transaction(tenant_id) as session:
        await session.execute(_REDELIVER, execution_id, tenant_id, now)


async def _end(
    database: Database,
    claimed: ClaimedDelivery,
    told: tuple[DeliveryState, float, Mapping[str, Json] | None, datetime | None],
) -> bool:
    place = (claimed.execution_id, claimed.fence, claimed.claim_number)
    return await database.execute(_END_CLAIM, *place, *told) > 0


def _claimed(row: asyncpg.Record) -> ClaimedDelivery:
    same = {name: row[name] for name in ClaimedDelivery.__slots__ if name != "execution_id"}
    status = ExecutionState(row["status"])
    return ClaimedDelivery(execution_id=ExecutionId(row["id"]), **same | {"status": status})


def _stored(row: asyncpg.Record) -> StoredDelivery:
    same = {name: row[name] for name in StoredDelivery.__slots__ if name != "execution_id"}
    status = ExecutionState(row["status"])
    return StoredDelivery(execution_id=ExecutionId(row["id"]), **same | {"status": status})
