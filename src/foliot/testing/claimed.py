"""A claimed execution, made up: for tests of what a worker does with one."""

from typing import Any, Final
from uuid import UUID

from foliot.core.ids import ExecutionId, JobId, TenantId
from foliot.core.model import HandlerTarget, RetryPolicy, Trigger
from foliot.store.claiming import ClaimedExecution, Instructions
from foliot.testing.rows import NOW

INSTRUCTIONS: Final = Instructions(HandlerTarget("work"), RetryPolicy(), 300.0, 30.0)


def a_claimed(**changes: Any) -> ClaimedExecution:  # noqa: ANN401 - any field of it
    values: dict[str, Any] = {
        "execution_id": ExecutionId(UUID(int=1)),
        "fence": 3,
        "tenant_id": TenantId(UUID(int=2)),
        "job_id": JobId(UUID(int=4)),
        "job_name": "report",
        "tags": ("a",),
        "labels": {"k": "v"},
        "trigger": Trigger.SCHEDULE,
        "queue": "default",
        "scheduled_time": NOW,
        "available_at": NOW,
        "claimed_at": NOW,
        "attempt_number": 1,
        "crash_count": 0,
        "run_alone": False,
        "cancel_requested_at": None,
        "idempotency_key": "key",
        "trace_id": None,
        "payload": {"n": 1},
        "instructions": INSTRUCTIONS,
    }
    return ClaimedExecution(**values | changes)
