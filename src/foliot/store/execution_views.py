"""An execution in the full shape of the contract, for all who tell of one."""

from datetime import datetime
from typing import Any, Final

from foliot.core.model import Json
from foliot.store.execution_rows import StoredAttempt, StoredExecution

View = dict[str, Any]


def execution_view(stored: StoredExecution) -> View:
    made = {
        "duration_ms": duration_ms(stored.started_at, stored.finished_at),
        "skip_reason": None,
        "error": error_view(stored.error),
        "attempts": [
            {name: getattr(attempt, name) for name in StoredAttempt.__slots__}
            | {"error": error_view(attempt.error)}
            for attempt in stored.attempts
        ],
    }
    return {name: made[name] if name in made else getattr(stored, name) for name in _EXECUTION}


_EXECUTION: Final = (
    "execution_id",
    "tenant_id",
    "job_id",
    "job_name",
    "job_version",
    "status",
    "attempt_number",
    "max_attempts",
    "fence",
    "scheduled_time",
    "available_at",
    "queued_at",
    "started_at",
    "finished_at",
    "duration_ms",
    "trigger",
    "priority",
    "queue",
    "worker_id",
    "labels",
    "tags",
    "idempotency_key",
    "trace_id",
    "retry_of",
    "cancel_requested_at",
    "dead_letter_id",
    "dag_run_id",
    "skip_reason",
    "progress",
    "result",
    "result_truncated",
    "response",
    "error",
    "attempts",
)


def error_view(error: Json) -> Json:
    """All four of its fields, whatever was known."""
    if not isinstance(error, dict):
        return error
    return {"type": None, "message": "", "http_status": None, "detail": None} | error


def duration_ms(started_at: datetime | None, finished_at: datetime | None) -> int | None:
    if started_at is None or finished_at is None:
        return None
    return max(0, round((finished_at - started_at).total_seconds() * 1000))
