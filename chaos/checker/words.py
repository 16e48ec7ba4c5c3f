"""Records in one line each, for witnesses."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final
from uuid import UUID

from chaos.facts import Change, Effect, Exchange, Fault, Row

_CHANGE: Final = (
    "status",
    "hold",
    "fence",
    "attempt_number",
    "crash_count",
    "run_alone",
    "worker_id",
    "available_at",
    "claimed_at",
    "cancel_requested_at",
    "owner",
    "epoch",
    "expires_at",
)
_ATTEMPT: Final = (
    "id",
    "job_name",
    "fence",
    "attempt_number",
    "status",
    "final",
    "worker_id",
    "available_at",
    "claimed_at",
    "started_at",
    "finished_at",
)
_EXECUTION: Final = (
    "id",
    "job_id",
    "job_version",
    "trigger",
    "status",
    "hold",
    "fence",
    "scheduled_time",
    "available_at",
    "created_at",
    "claimed_at",
)
_SKIP: Final = (
    "job_id",
    "schedule_version",
    "from_instant",
    "to_instant",
    "count",
    "reason",
    "recorded_at",
)
_VERSION: Final = ("job_id", "version", "schedule_version", "status", "valid_from", "last_instant")
_LETTER: Final = ("id", "job_name", "reason", "total_attempts", "failed_at", "replayed_as")


def moment(at: datetime | None) -> str:
    return "-" if at is None else f"{at:%H:%M:%S.%f}"


def change(one: Change) -> str:
    """What it was and what became of it: of an update, only what differs."""
    old, new = one.old, one.new
    head = f"change {one.number}, committed {moment(one.committed_at)}"
    if old is None:
        return f"{head}: inserted {_fields(new or {}, ('id', 'trigger', *_CHANGE))}"
    if new is None:
        return f"{head}: deleted {_fields(old, ('id', *_CHANGE))}"
    differs = [name for name in _CHANGE if old.get(name) != new.get(name)]
    told = ", ".join(
        f"{name} {_plain(old.get(name))} -> {_plain(new.get(name))}" for name in differs
    )
    return f"{head}: fence {new.get('fence', new.get('epoch'))}: {told}"


def attempt(row: Row) -> str:
    error = row.get("error")
    kind = f" error={error.get('type')}" if error else ""
    return f"attempt {_fields(row, _ATTEMPT)}{kind}"


def execution(row: Row) -> str:
    return f"execution {_fields(row, _EXECUTION)}"


def skip(row: Row) -> str:
    return f"skip {_fields(row, _SKIP)}"


def version(row: Row) -> str:
    return f"version {_fields(row, _VERSION)}"


def letter(row: Row) -> str:
    return f"dead letter {_fields(row, _LETTER)}"


def queue(one: Change) -> str:
    row = one.new or {}
    state = "open" if row.get("paused_at") is None else "paused"
    return f"queue {row.get('name')} {state}, committed {moment(one.committed_at)}"


def report(row: Row) -> str:
    return (
        f"{row['kind']} of {row['execution_id']} said by fence {row['said']}, written under "
        f"{row['fence']}, committed {moment(row['committed_at'])}"
    )


def worker(row: Row) -> str:
    times = f"{moment(row['registered_at'])} .. {moment(row['last_heartbeat_at'])}"
    return f"worker {row['id']} {row['name']} {row['status']} {times}"


def effect(one: Effect) -> str:
    return (
        f"effect {one.number} at {one.monotonic:.3f}: {one.what} fence={one.fence} "
        f"attempt_number={one.attempt_number} key={one.idempotency_key} process={one.process} "
        f"job={one.job}"
    )


def exchange(one: Exchange) -> str:
    answered = "-" if one.answered is None else f"{one.answered:.3f}"
    return (
        f"exchange {one.action} sent={one.sent:.3f} answered={answered} status={one.status} "
        f"key={one.key} job_id={one.job_id} execution_id={one.execution_id}"
    )


def fault(one: Fault) -> str:
    point = f" {one.point}" if one.point else ""
    return f"fault {one.kind} {one.victim}{point} at {moment(one.began_at)}"


def _fields(row: Row, names: Iterable[str]) -> str:
    return " ".join(f"{name}={_plain(row[name])}" for name in names if row.get(name) is not None)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, UUID):
        return str(value)
    return "-" if value is None else str(value)
