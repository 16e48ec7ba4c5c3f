"""The model of what workers do, and of what is done to executions by name: claim, finish, cancel,
rescue."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from foliot.core.ids import ExecutionId, TenantId, WorkerId
from foliot.core.poison import QueueAgain, after_death, death_of
from foliot.core.retry import GiveUp
from foliot.core.states import EXECUTION, TERMINAL, ExecutionEvent, ExecutionState, advance
from foliot.core.states import WorkerState as W
from foliot.store.cancelling import Cancellation
from foliot.store.claiming import Claim, ClaimRequest, Look
from foliot.store.finishing import Outcome
from foliot.testing.model.state import Disagreement, Row, StoreModel, is_close, same, within

S, E = ExecutionState, ExecutionEvent
_UNCOUNTED = {E.SNOOZE, E.HAND_BACK, E.HOLD}


def claimable(model: StoreModel, request: ClaimRequest, now: datetime) -> list[Row]:
    """What the worker may take, the first by rank first."""
    worker = model.workers.get(request.worker_id)
    if worker is None or worker.status is not W.ACTIVE or request.queue in model.paused_queues:
        return []
    rows = [
        row
        for row in model.live.values()
        if row.waits
        and row.execution_id not in model.unseen
        and row.lane_id in request.lane_ids
        and worker.tenant_id in (None, row.tenant_id)
        and (row.start_by is None or row.start_by > now)
    ]
    return sorted(rows, key=lambda row: row.rank or 0.0)


def claim(
    model: StoreModel, request: ClaimRequest, claims: Sequence[Claim], now: datetime, *, alone: bool
) -> None:
    """By rank, as many as asked for. Rows that another is about to end may be left out, and those
    that a race has left behind unless it is looked for them."""
    free = {row.execution_id: row for row in claimable(model, request, now)}
    within((one.execution_id for one in claims), free, "claimed")
    taken = [free[one.execution_id] for one in claims]
    everywhere = request.look is Look.EVERYWHERE
    seen = [row for row in free.values() if everywhere or row in taken or not _behind(model, row)]
    heads = [row.rank for row in seen][: request.bite]
    same(len(taken) <= len(heads), True, "claimed no more than asked for")
    for place, (one, row) in enumerate(zip(claims, taken, strict=True)):
        same(is_close(one.rank, row.rank), True, f"rank {one.rank} of {row}")
        turn = is_close(row.rank, heads[place])
        same(turn or (not alone and row.rank in heads), True, f"turn of {row} among {heads}")
    same(alone and len(taken) < len(heads), False, f"left out of {heads}")
    for row, one in zip(taken, claims, strict=True):
        row.rank = one.rank  # to the last bit
    _tell_clocks(model, request, taken)
    for row, one in zip(taken, claims, strict=True):
        row.status = advance(EXECUTION, row.status, E.CLAIM)
        row.worker_id, row.claimed_at = request.worker_id, now
        row.fence, row.attempt_number = row.fence + 1, row.attempt_number + 1
        same(one.fence, row.fence, "fence of a claim")
        model.claims.append((request.worker_id, row.execution_id, row.fence))


def _behind(model: StoreModel, row: Row) -> bool:
    """Ranked while a claim that it did not see moved the lane's clock past it."""
    low, _ = model.clocks.get(row.lane_id, (float("-inf"), 0.0))
    return row.rank is not None and row.rank < low


def _tell_clocks(model: StoreModel, request: ClaimRequest, taken: Iterable[Row]) -> None:
    """A lane has come as far as what was taken there; a tenant's own worker passes over others, so
    it must not come farther than the first that it sees."""
    shared = model.workers[request.worker_id].tenant_id is None
    everywhere = request.look is Look.EVERYWHERE
    seen = [
        row
        for row in model.live.values()
        if row.execution_id not in model.unseen and (everywhere or not _behind(model, row))
    ]
    for row in taken:
        rank = row.rank or 0.0
        low, high = model.clocks.get(row.lane_id, (float("-inf"), float("-inf")))
        if shared:
            model.clocks[row.lane_id] = (max(low, rank), max(high, rank))
        else:
            lane = (each.rank or 0.0 for each in seen if _waits_in(each, row.lane_id))
            model.clocks[row.lane_id] = (low, max(high, min(lane, default=rank)))


def _waits_in(row: Row, lane_id: int) -> bool:
    return row.waits and row.lane_id == lane_id


def finish(
    model: StoreModel, worker_id: WorkerId, outcome: Outcome, now: datetime
) -> ExecutionState | None:
    """The state it leads to; None if another claim holds it, or it is over."""
    row = model.live.get(outcome.execution_id)
    if row is None or (row.worker_id, row.fence) != (worker_id, outcome.fence):
        return None
    event = E.CANCEL if row.cancel_requested else outcome.event
    state = advance(EXECUTION, row.status, event)
    if state in TERMINAL:
        model.end(row, state, outcome.dead_letter if state is not S.CANCELLED else None)
        return state
    if event in (E.RETRY, E.LOSE):
        model.keep_attempt(row, S.FAILED, final=False)
    row.attempt_number -= event in _UNCOUNTED
    row.status, row.worker_id, row.claimed_at, row.rank = state, None, None, None
    row.hold = "BREAKER" if state is S.WAITING else None
    row.available_at = now + timedelta(seconds=outcome.delay_seconds)
    row.start_by = row.start_by if outcome.started_at is None else None
    return state


def cancel(
    model: StoreModel, execution_id: ExecutionId, tenant_id: TenantId | None = None
) -> Cancellation:
    """Of any tenant unless one is named."""
    row = model.live.get(execution_id)
    if row is None or tenant_id not in (None, row.tenant_id):
        return Cancellation.NOT_LIVE
    if row.worker_id is None:
        model.end(row, S.CANCELLED)
        return Cancellation.CANCELLED
    row.cancel_requested = True
    return Cancellation.ASKED


def lost(model: StoreModel) -> set[ExecutionId]:
    """What dead workers hold."""
    return {
        row.execution_id
        for row in model.live.values()
        if row.worker_id is not None and model.workers[row.worker_id].status is W.DEAD
    }


def rescue(model: StoreModel, execution_id: ExecutionId, now: datetime) -> ExecutionState | None:
    """What a dead worker had not begun goes back as it was; the rest runs alone, or ends."""
    row = model.live[execution_id]
    worker_id = row.worker_id
    if worker_id is None:
        raise Disagreement(f"{execution_id} was rescued, and nobody has it")
    death = death_of(
        said_begun=execution_id in model.workers[worker_id].started,
        run_alone=row.run_alone,
        fence=row.fence,
        attempt_number=row.attempt_number,
    )
    verdict = after_death(row.retry_policy, row.attempt_number, row.crash_count, death)
    event, dead_letter = E.LOSE, None
    if isinstance(verdict, GiveUp):
        event, dead_letter = E.FAIL, verdict.reason
    elif isinstance(verdict, QueueAgain):
        event = E.HAND_BACK
    elif not row.cancel_requested:
        row.run_alone, row.crash_count, row.start_by = True, verdict.crash_count, None
    outcome = Outcome(execution_id, row.fence, event, dead_letter=dead_letter)
    return finish(model, worker_id, outcome, now)
