"""The model of what schedulers do over and over: let go what is due, what overlapped and what a
limit held; end what is too late; bury the silent."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.model import OverlapPolicy
from foliot.core.states import ExecutionState, WorkerState
from foliot.store.workers import SILENT_SECONDS_MAX
from foliot.testing.model.ranks import let_go, queue_up
from foliot.testing.model.state import Row, StoreModel, same, within

S = ExecutionState
_DATED = {S.PENDING, S.QUEUED, S.RETRYING}


def is_parked(row: Row) -> bool:
    """Until a time comes."""
    return row.rank is None and (row.status in _DATED or row.hold == "BREAKER")


def due(model: StoreModel, low: datetime | None, now: datetime) -> list[Row]:
    """Parked rows whose time has come, the longest due first."""
    rows = [
        row
        for row in model.live.values()
        if is_parked(row) and row.available_at <= now and (low is None or row.available_at >= low)
    ]
    return sorted(rows, key=lambda row: (row.available_at, row.execution_id))


def release(model: StoreModel, rows: Sequence[Row]) -> tuple[int, int]:
    """How many of what is due may be claimed now, and how many went to wait for a slot."""
    let_go(model, rows)
    held = sum(row.hold == "LIMIT" for row in rows)
    return len(rows) - held, held


def startable(model: StoreModel, now: datetime) -> dict[ExecutionId, Row]:
    """The oldest held execution of each job that has nothing else under way or allows overlaps by
    now, in their order."""
    heads = []
    for job_id in {row.job_id for row in model.live.values() if row.hold == "OVERLAP"}:
        rows = model.of_job(job_id)
        oldest = min((row for row in rows if row.hold == "OVERLAP"), key=_age)
        allows = model.jobs[job_id].job.schedule.overlap_policy is OverlapPolicy.ALLOW
        is_free = allows or all(row.hold == "OVERLAP" for row in rows)
        if is_free and oldest.available_at <= now:
            heads.append(oldest)
    return {row.execution_id: row for row in sorted(heads, key=_age)}


def release_overlaps(
    model: StoreModel, released: Iterable[ExecutionId], now: datetime, *, alone: bool
) -> None:
    """All of them, but those whose job somebody is at."""
    heads, asked = startable(model, now), set(released)
    (same if alone else within)(asked, set(heads), "started after an overlap")
    let_go(model, [row for row in heads.values() if row.execution_id in asked])


def held(model: StoreModel) -> list[Row]:
    """What waits for a slot, the longest due of each priority first."""
    rows = [row for row in model.live.values() if row.hold == "LIMIT"]
    return sorted(rows, key=lambda row: (row.priority, *_age(row)))


def is_served(model: StoreModel, row: Row) -> bool:
    """Its queue goes on, and somebody is there for its tenant, or nobody for anyone."""
    tenants = {
        worker.tenant_id for worker in model.workers.values() if worker.status is WorkerState.ACTIVE
    }
    return row.queue not in model.paused_queues and (
        not tenants or bool(tenants & {None, row.tenant_id})
    )


def has_room(model: StoreModel, row: Row, taken: Mapping[str, int]) -> bool:
    keys = row.limit_keys or ()
    return all(key not in model.limits or taken[key] < model.limits[key] for key in keys)


def someone_has_room(model: StoreModel) -> bool:
    taken = slots_taken(model)
    return any(is_served(model, row) and has_room(model, row, taken) for row in held(model))


def check_slots(model: StoreModel, asked: set[ExecutionId], batch: int, *, alone: bool) -> None:
    """Each has room beside the others, and with nobody in the way it goes before those behind it
    under the same keys, and nobody is left who has room. Which priorities are drawn is chance."""
    taken = slots_taken(model)
    passed_over: list[Row] = []
    early: set[ExecutionId] = set()
    for row in held(model):
        if row.execution_id not in asked:
            passed_over.append(row)
            continue
        if any(_alike(row, each) for each in passed_over):
            early.add(row.execution_id)
        same(has_room(model, row, taken), True, f"{row.execution_id} has room")
        same(is_served(model, row) or not alone, True, f"{row.execution_id} is served")
        for key in row.limit_keys or ():
            taken[key] += 1
    if alone:
        same(early, set(), "got a slot before their turn")
    if alone and len(asked) < batch:
        served = (row for row in passed_over if is_served(model, row))
        left = {row.execution_id for row in served if has_room(model, row, taken)}
        same(set(), left, "could have got a slot")


def _alike(row: Row, other: Row) -> bool:
    kinds = {(each.limit_keys, each.lane_id, each.priority) for each in (row, other)}
    return len(kinds) == 1


def slots_taken(model: StoreModel) -> dict[str, int]:
    taken = {key: 0 for row in model.live.values() for key in row.limit_keys or ()}
    for row in model.live.values():
        for key in row.limit_keys or () if row.rank is not None else ():
            taken[key] += 1
    return taken


def admit(model: StoreModel, admitted: Iterable[ExecutionId], batch: int, *, alone: bool) -> None:
    """As many as have room, but those that somebody is about to end."""
    asked = set(admitted)
    within(asked, {row.execution_id for row in held(model)}, "got a slot")
    check_slots(model, asked, batch, alone=alone)
    queue_up(model, [row for row in held(model) if row.execution_id in asked])


def late(model: StoreModel, now: datetime) -> set[ExecutionId]:
    """What nobody started before its start deadline."""
    return {
        row.execution_id
        for row in model.live.values()
        if row.worker_id is None and row.start_by is not None and row.start_by <= now
    }


def expire(model: StoreModel, ended: Iterable[ExecutionId], now: datetime, *, alone: bool) -> None:
    """All of them, but those that somebody has in hand."""
    expected, asked = late(model, now), set(ended)
    (same if alone else within)(asked, expected, "expired")
    for execution_id in asked:
        model.end(model.live[execution_id], S.FAILED, "EXPIRED")


def silent(model: StoreModel, now: datetime) -> set[WorkerId]:
    since = now - timedelta(seconds=SILENT_SECONDS_MAX)
    return {
        worker_id
        for worker_id, worker in model.workers.items()
        if worker.status is not WorkerState.DEAD and worker.last_beat < since
    }


def _age(row: Row) -> tuple[datetime, ExecutionId]:
    return row.scheduled_time, row.execution_id
