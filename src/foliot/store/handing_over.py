"""Executions that an HTTP target goes on with by itself, and whose end it tells later.

They stay RUNNING, in the hands of a worker that is nobody's process: it never falls silent, so
nothing is rescued from it. What is not told in time is ended like anything else that runs too long.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from foliot.core.ids import ExecutionId, TenantId, WorkerId
from foliot.core.model import RetryPolicy, TargetType
from foliot.core.states import ExecutionEvent
from foliot.store.database import Database
from foliot.store.rescuing import read_policy
from foliot.store.statements import statement
from foliot.store.workers import REMOTE

_HAND_OVER: Final = statement("executions/hand_over")
_READ_HELD: Final = statement("executions/read_held")


@dataclass(frozen=True, slots=True)
class HandOver:
    """A worker is done with its attempt, which is not over."""

    event: ClassVar[ExecutionEvent] = ExecutionEvent.HAND_OVER

    execution_id: ExecutionId
    fence: int


@dataclass(frozen=True, slots=True)
class HeldExecution:
    """What runs, in the hands of a worker or of an HTTP target."""

    execution_id: ExecutionId
    fence: int
    worker_id: WorkerId
    queue: str
    attempt_number: int
    claimed_at: datetime
    cancel_requested: bool
    target_type: TargetType | None
    retry_policy: RetryPolicy


async def hand_over(
    database: Database, worker_id: WorkerId, batch: Sequence[HandOver]
) -> frozenset[ExecutionId]:
    """Those that are with their targets now. To do it again changes nothing."""
    ordered = sorted(batch, key=lambda each: each.execution_id)
    rows = await database.fetch(
        _HAND_OVER,
        worker_id,
        REMOTE,
        [each.execution_id for each in ordered],
        [each.fence for each in ordered],
    )
    return frozenset(ExecutionId(row["id"]) for row in rows)


async def read_held(
    database: Database, tenant_id: TenantId, execution_id: ExecutionId
) -> HeldExecution | None:
    """None if it does not run, or is not this tenant's."""
    async with database.transaction(tenant_id) as session:
        row = await session.fetch_row(_READ_HELD, execution_id, tenant_id)
    if row is None:
        return None
    known = row["target_type"] in set(TargetType)
    return HeldExecution(
        execution_id=execution_id,
        fence=row["fence"],
        worker_id=WorkerId(row["worker_id"]),
        queue=row["queue"],
        attempt_number=row["attempt_number"],
        claimed_at=row["claimed_at"],
        cancel_requested=row["cancel_requested_at"] is not None,
        target_type=TargetType(row["target_type"]) if known else None,
        retry_policy=read_policy(row["retry_policy"]),
    )
