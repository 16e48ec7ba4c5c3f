"""What a worker's statements do to the simulated store."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from chaos.simulation.engine import Violation
from chaos.simulation.scheduler_statements import Columns, Statement
from chaos.simulation.store import SimulatedStore
from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.retry import DeadLetterReason
from foliot.core.states import ExecutionEvent, ExecutionState, WorkerState
from foliot.store.claiming import BACK_SECONDS, Claim, ClaimRequest
from foliot.store.finishing import Outcome
from foliot.testing.model import work
from foliot.testing.model.state import Row, WorkerRecord

LOOKS: Final = {seconds: look for look, seconds in BACK_SECONDS.items()}
HELD_SINCE: Final = timedelta(seconds=60)


def register(store: SimulatedStore, worker_id: WorkerId, *profile: Any) -> int:  # noqa: ANN401
    store.workers[worker_id] = WorkerRecord(profile[-1] or store.now)
    return 1


def beat(
    store: SimulatedStore, worker_id: WorkerId, started: Sequence[ExecutionId], now: datetime | None
) -> Columns | None:
    worker = store.workers.get(worker_id)
    if worker is None or worker.status is WorkerState.DEAD:
        return None
    since = worker.last_beat - HELD_SINCE
    held = sorted(
        (row.execution_id, row.fence, row.cancel_requested)
        for row in store.live.values()
        if row.worker_id == worker_id
        and row.claimed_at is not None
        and (row.claimed_at >= since or row.execution_id in started)
    )
    worker.last_beat = max(worker.last_beat, now or store.now)
    worker.started = frozenset(started)
    return {
        "status": worker.status,
        "ids": [execution_id for execution_id, _, _ in held],
        "fences": [fence for _, fence, _ in held],
        "cancelled": [asked for _, _, asked in held],
    }


def deregister(store: SimulatedStore, worker_id: WorkerId, started: Sequence[ExecutionId]) -> int:
    worker = store.workers.get(worker_id)
    if worker is None or worker.status is WorkerState.DEAD:
        return 0
    worker.status, worker.started = WorkerState.DEAD, frozenset(started)
    return 1


def drain(store: SimulatedStore, worker_id: WorkerId) -> int:
    worker = store.workers.get(worker_id)
    if worker is None or worker.status is not WorkerState.ACTIVE:
        return 0
    worker.status = WorkerState.DRAINING
    return 1


def list_cancelled(
    store: SimulatedStore, worker_id: WorkerId, running: Sequence[ExecutionId]
) -> list[Columns]:
    rows = [store.live[one] for one in sorted(running) if one in store.live]
    return [
        {"id": row.execution_id, "fence": row.fence}
        for row in rows
        if row.worker_id == worker_id and row.cancel_requested
    ]


def list_servable(store: SimulatedStore, *profile: object) -> list[Columns]:
    """Every worker can serve every lane."""
    del profile
    return [{"id": lane, "queue": queue} for (queue, _), lane in sorted(store.lanes.items())]


def claim_ready(
    store: SimulatedStore,
    worker_id: WorkerId,
    queue: str,
    lane_ids: Sequence[int],
    bite: int,
    *rest: Any,  # noqa: ANN401 - how far back, and when
) -> list[Columns]:
    back_seconds, now = rest
    moment = now or store.now
    request = ClaimRequest(worker_id, queue, lane_ids, bite, LOOKS[back_seconds])
    rows = work.claimable(store, request, moment)[:bite]
    claims = [Claim(row.execution_id, row.fence + 1, row.rank or 0.0) for row in rows]
    work.claim(store, request, claims, moment, alone=False)
    return [{"id": one.execution_id, "fence": one.fence, "rank": one.rank} for one in claims]


def read_claimed(
    store: SimulatedStore, worker_id: WorkerId, ids: Sequence[ExecutionId], fences: Sequence[int]
) -> list[Columns]:
    found = []
    for execution_id, fence in zip(ids, fences, strict=True):
        row = store.live.get(execution_id)
        if row is not None and (row.worker_id, row.fence) == (worker_id, fence):
            found.append(_claimed(store, row))
    return found


def _claimed(store: SimulatedStore, row: Row) -> Columns:
    same = ("fence", "tenant_id", "job_id", "queue", "scheduled_time")
    more = ("available_at", "claimed_at", "attempt_number", "crash_count", "run_alone")
    return {name: getattr(row, name) for name in (*same, *more)} | {
        "id": row.execution_id,
        "job_name": store.jobs[row.job_id].job.name,
        "tags": None,
        "labels": None,
        "trigger": row.trigger,
        "cancel_requested_at": store.now if row.cancel_requested else None,
        "idempotency_key": None,
        "trace_id": None,
        "payload_is_jobs": True,
        "payload": None,
        "limited": row.limit_keys is not None,
        "followed": False,
        "definition": store.definition(row.job_id),
    }


def finish(store: SimulatedStore, worker_id: WorkerId, *columns: Any) -> Columns:  # noqa: ANN401
    ids, fences, events, _, _, _, _, started_ats, delays, dead, *_ = columns
    written, cancelled = [], []
    for place, execution_id in enumerate(ids):
        told = _at(events, place)
        outcome = Outcome(
            execution_id,
            fences[place],
            ExecutionEvent(told) if told else ExecutionEvent.SUCCEED,
            started_at=_at(started_ats, place),
            delay_seconds=_at(delays, place) or 0.0,
            dead_letter=DeadLetterReason(_at(dead, place)) if _at(dead, place) else None,
        )
        state = _finish_one(store, worker_id, outcome)
        if state is not None:
            written.append(execution_id)
        if state is ExecutionState.CANCELLED:
            cancelled.append(execution_id)
    fewer = len(written) < len(ids)
    return {"written": len(written), "cancelled": cancelled, "ids": written if fewer else None}


def _finish_one(
    store: SimulatedStore, worker_id: WorkerId, outcome: Outcome
) -> ExecutionState | None:
    """A word about another's claim changes nothing, and the last attempt allows no other."""
    row = store.live.get(outcome.execution_id)
    held = row is not None and (row.worker_id, row.fence) == (worker_id, outcome.fence)
    attempt = 0 if row is None else row.attempt_number
    state = work.finish(store, worker_id, outcome, store.now)
    store.counts[f"finish {outcome.event if state else 'superseded'}"] += 1
    if state is not None and (row is None or not held):
        raise Violation(f"{outcome.execution_id}: a stale {outcome.event} was written as {state}")
    is_last = row is not None and attempt >= row.retry_policy.max_attempts
    if is_last and state is ExecutionState.RETRYING:
        raise Violation(f"{outcome.execution_id} is tried again after {attempt} attempts")
    return state


def read_outcomes(
    store: SimulatedStore,
    worker_id: WorkerId,
    ids: Sequence[ExecutionId],
    fences: Sequence[int],
    now: datetime | None,
) -> list[Columns]:
    del now
    return [
        {"id": execution_id, "status": _status(store, worker_id, execution_id, fence)}
        for execution_id, fence in zip(ids, fences, strict=True)
    ]


def _status(
    store: SimulatedStore, worker_id: UUID, execution_id: ExecutionId, fence: int
) -> str | None:
    for id_, attempt_fence, _, state, final, by in reversed(store.history):
        if (id_, attempt_fence, by) == (execution_id, fence, worker_id):
            return state if final else ExecutionState.RETRYING.value
    row = store.live.get(execution_id)
    if row is None or row.fence != fence:
        return None
    if row.worker_id == worker_id:
        return "HELD"
    return row.status.value if row.worker_id is None else None


def _at(column: Sequence[Any] | None, place: int) -> Any:  # noqa: ANN401 - of any column
    return None if column is None else column[place]


READS: Final[Mapping[str, Statement]] = {
    "workers/list_cancelled": list_cancelled,
    "lanes/list_servable": list_servable,
    "executions/read_claimed": read_claimed,
    "executions/read_outcomes": read_outcomes,
}
CHANGES: Final[Mapping[str, Statement]] = {
    "workers/register": register,
    "workers/beat": beat,
    "workers/deregister": deregister,
    "workers/drain": drain,
    "executions/claim_ready": claim_ready,
    "executions/finish": finish,
}
