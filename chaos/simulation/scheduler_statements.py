"""What a scheduler's statements do to the simulated store.

Each takes the arguments of the statement of its name and answers with its columns. Where the model
has the operation, it does it; the rest is written as the SQL is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from chaos.simulation.engine import Violation
from chaos.simulation.firing import fires_of
from chaos.simulation.store import SimulatedStore, schedule_text
from foliot.core.ids import ExecutionId, SchedulerId, WorkerId, shard_of
from foliot.core.lease import Lease
from foliot.core.retry import DeadLetterReason
from foliot.core.schedule.overlap import OverlapDecision
from foliot.core.states import ExecutionEvent, ExecutionState, JobState, WorkerState
from foliot.store.definitions import as_json
from foliot.store.finishing import Outcome
from foliot.store.workers import SILENT_SECONDS_MAX
from foliot.testing.model import jobs, passes, work
from foliot.testing.model.state import Row

Columns = dict[str, Any]
Statement = Callable[..., Any]
# How long the last disturbance of a node may be the reason that others miss it: it is heard every
# five seconds, tries again after at most two, and is dead after fifteen.
MISSED_SECONDS: Final = 25.0
LATE: Final = timedelta(seconds=5)
DECIDED_WITHIN: Final = timedelta(seconds=5)


def read_leases(store: SimulatedStore, lease_seconds: float, now: datetime | None) -> Columns:
    moment = now or store.now
    leases = store.leases.values()
    since = moment - timedelta(seconds=lease_seconds)
    return {
        "moment": moment,
        "shards": [lease.shard for lease in leases],
        "owners": [lease.owner for lease in leases],
        "epochs": [lease.epoch for lease in leases],
        "expiries": [lease.expires_at for lease in leases],
        "live": sorted(one for one, seen in store.schedulers.items() if seen > since),
    }


def renew(
    store: SimulatedStore,
    node: SchedulerId,
    host: str,
    version: str,
    shards: Sequence[int],
    epochs: Sequence[int],
    *rest: Any,  # noqa: ANN401 - how long, and when
) -> Columns:
    """A lease that ran out and that nobody took is renewed as well."""
    del host, version
    lease_seconds, now = rest
    moment = now or store.now
    store.schedulers[node] = max(moment, store.schedulers.get(node, moment))
    renewed = []
    for shard, epoch in zip(shards, epochs, strict=True):
        lease = store.leases[shard]
        if (lease.owner, lease.epoch) == (node, epoch):
            until = moment + timedelta(seconds=lease_seconds)
            expires_at = max(until, lease.expires_at or until)
            store.leases[shard] = replace(lease, expires_at=expires_at)
            renewed.append(shard)
    return {"moment": moment, "shards": sorted(renewed)}


def take(
    store: SimulatedStore,
    node: SchedulerId,
    shards: Sequence[int],
    epochs: Sequence[int],
    lease_seconds: float,
    now: datetime | None,
) -> list[Columns]:
    moment = now or store.now
    taken = []
    for shard, epoch in zip(shards, epochs, strict=True):
        lease = store.leases[shard]
        if lease.epoch == epoch and is_free(lease, moment):
            until = moment + timedelta(seconds=lease_seconds)
            store.leases[shard] = Lease(shard, node, lease.epoch + 1, until)
            taken.append({"shard": shard})
    return taken


def is_free(lease: Lease, moment: datetime) -> bool:
    return lease.owner is None or lease.expires_at is None or lease.expires_at <= moment


def give(
    store: SimulatedStore,
    node: SchedulerId,
    shards: Sequence[int] | None,
    epochs: Sequence[int] | None,
) -> int:
    told = None if shards is None else dict(zip(shards, epochs or (), strict=True))
    given = 0
    for shard, lease in store.leases.items():
        if lease.owner == node and (told is None or told.get(shard) == lease.epoch):
            store.leases[shard] = Lease(shard, None, lease.epoch, None)
            given += 1
    if told is None:
        store.schedulers.pop(node, None)
    return given


def read_clock(store: SimulatedStore, now: datetime | None) -> datetime:
    return now or store.now


def stage_due(
    store: SimulatedStore, shards: Sequence[int], low: datetime | None, high: datetime, limit: int
) -> list[Columns]:
    asked = frozenset(shards)
    found = []
    for job_id, record in store.jobs.items():
        if record.status is not JobState.ACTIVE or record.next_instant is None:
            continue
        at = record.next_run_at
        if at is None or at >= high or (low is not None and at < low):
            continue
        if shard_of(job_id) in asked:
            found.append(
                {
                    "job_id": job_id,
                    "tenant_id": record.job.tenant_id,
                    "queue": record.job.queue,
                    "next_instant": record.next_instant,
                    "next_run_at": at,
                    "schedule_version": record.schedule_version,
                    "fired_count": record.fired_count,
                    "counted_from": record.counted_from,
                    "schedule": schedule_text(record.job.schedule),
                    "calendar": None,
                }
            )
    found.sort(key=lambda row: (row["next_run_at"], row["job_id"]))
    return found[:limit]


def fire_due(
    store: SimulatedStore,
    *columns: Any,  # noqa: ANN401
) -> tuple[list[int], list[int]] | None:
    if store.now > columns[25] + DECIDED_WITHIN:
        store.counts["decided too long ago"] += 1
        return None
    batch = fires_of(store, columns)
    seen = [
        (n, one)
        for n, one in enumerate(batch, 1)
        if jobs.is_as_seen(store, one) and (one.holds_until is None or store.now <= one.holds_until)
    ]
    store.counts["passed over"] += len(batch) - len(seen)
    decisions = iter(jobs.fire(store, [one for _, one in seen], store.now))
    fired = [sum(next(decisions) is not OverlapDecision.SKIP for _ in one.fires) for _, one in seen]
    return [n for n, _ in seen], fired


def release_due(
    store: SimulatedStore, low: datetime | None, batch: int, now: datetime | None
) -> Columns:
    moment = now or store.now
    rows = passes.due(store, low, moment)[:batch]
    released, held = passes.release(store, rows)
    return {
        "seen": len(rows),
        "released": released,
        "held": held,
        "moment": moment,
        "queues": sorted({row.queue for row in rows}),
    }


def read_next_release(store: SimulatedStore, after: datetime, now: datetime | None) -> float | None:
    times = [row.available_at for row in store.live.values() if passes.is_parked(row)]
    first = min((at for at in times if at > after), default=None)
    return None if first is None else (first - (now or store.now)).total_seconds()


def release_overlaps(
    store: SimulatedStore, after: UUID | None, limit: int, now: datetime | None
) -> tuple[list[ExecutionId], None, list[str]]:
    del after, limit
    moment = now or store.now
    heads = passes.startable(store, moment)
    passes.release_overlaps(store, heads, moment, alone=True)
    return [*heads], None, sorted({row.queue for row in heads.values()})


def admit_held(store: SimulatedStore, *walk: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """In one page; which priorities are drawn is not modelled, the first in order come first."""
    batch: int = walk[5]
    taken = passes.slots_taken(store)
    chosen: list[Row] = []
    for row in passes.held(store):
        if len(chosen) == batch:
            break
        if passes.is_served(store, row) and passes.has_room(store, row, taken):
            chosen.append(row)
            for key in row.limit_keys or ():
                taken[key] += 1
    ids = [row.execution_id for row in chosen]
    passes.admit(store, ids, batch, alone=True)
    return ids, None, 0, None, sorted({row.queue for row in chosen}), None


def bury_silent(
    store: SimulatedStore, silent_seconds: float, now: datetime | None
) -> list[Columns]:
    """Who was only kept from beating by an outage that kept everybody is not to be found here."""
    if silent_seconds != SILENT_SECONDS_MAX:
        raise ValueError("the model knows one expiry")
    buried = sorted(passes.silent(store, now or store.now))
    for worker_id in buried:
        check_missed(store, worker_id, "was buried")
        store.workers[worker_id].status = WorkerState.DEAD
        store.counts["buried"] += 1
    return [{"id": worker_id} for worker_id in buried]


def check_missed(store: SimulatedStore, bearer: UUID, what: str) -> None:
    """Whoever loses what it has by silence was dead, or something had happened to it alone."""
    node = store.bearers.get(bearer)
    if node is None or not node.is_alive or node.identity != bearer:
        return
    if node.world.now - node.disturbed_until > MISSED_SECONDS:
        raise Violation(f"{node.name} was alive and undisturbed, and {what}")


def list_lost(
    store: SimulatedStore, worker_id: UUID, execution_id: UUID, limit: int, *rest: object
) -> list[Columns]:
    del rest
    lost = work.lost(store)
    rows = [store.live[one] for one in lost]
    return _page(store, rows, (worker_id, execution_id), limit, begun=None)


def list_overdue(
    store: SimulatedStore, worker_id: UUID, execution_id: UUID, limit: int, now: datetime | None
) -> list[Columns]:
    moment = now or store.now
    rows = [row for row in store.live.values() if _is_overdue(store, row, moment)]
    return _page(store, rows, (worker_id, execution_id), limit, begun=True)


def _is_overdue(store: SimulatedStore, row: Row, moment: datetime) -> bool:
    if row.worker_id is None or row.claimed_at is None:
        return False
    job = store.jobs[row.job_id].job
    grace = timedelta(seconds=job.cancel_grace_seconds) + LATE
    asked_at = store.cancel_asked_at.get(row.execution_id)
    if row.claimed_at >= moment - LATE:
        return False
    too_long = row.claimed_at < moment - timedelta(seconds=job.timeout_seconds) - grace
    return too_long or (row.cancel_requested and asked_at is not None and asked_at < moment - grace)


def _page(
    store: SimulatedStore,
    rows: Sequence[Row],
    after: tuple[UUID, UUID],
    limit: int,
    *,
    begun: bool | None,
) -> list[Columns]:
    found = []
    for row in rows:
        if row.worker_id is None or (row.worker_id, row.execution_id) <= after:
            continue
        started = row.execution_id in store.workers[row.worker_id].started
        found.append(
            {
                "id": row.execution_id,
                "fence": row.fence,
                "worker_id": row.worker_id,
                "claimed_at": row.claimed_at,
                "attempt_number": row.attempt_number,
                "crash_count": row.crash_count,
                "run_alone": row.run_alone,
                "cancel_requested_at": store.now if row.cancel_requested else None,
                "started": started if begun is None else begun,
                "retry_policy": as_json(row.retry_policy),
            }
        )
    found.sort(key=lambda each: (each["worker_id"], each["id"]))
    return found[:limit]


def rescue(store: SimulatedStore, *columns: Any) -> list[Columns]:  # noqa: ANN401
    """Repeats state, fence and owner; a crash count sends it to a process of its own."""
    changed = []
    for one in _verdicts(columns):
        row = store.live.get(one["outcome"].execution_id)
        held = row is not None and (row.status, row.fence, row.worker_id) == (
            ExecutionState.RUNNING,
            one["outcome"].fence,
            one["worker_id"],
        )
        if row is None or not held:
            store.counts["rescue too late"] += 1
            continue
        if one["crash_count"] is not None:
            row.run_alone, row.crash_count, row.start_by = True, one["crash_count"], None
        state = work.finish(store, one["worker_id"], one["outcome"], store.now)
        store.counts[f"rescue {one['outcome'].event}"] += 1
        changed.append({"id": one["outcome"].execution_id, "status": state})
    return changed


def _verdicts(columns: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    ids, fences, worker_ids, events, crash_counts, _, started_ats, delays, dead, *_ = columns
    for place, execution_id in enumerate(ids):
        yield {
            "worker_id": WorkerId(worker_ids[place]),
            "crash_count": crash_counts[place],
            "outcome": Outcome(
                execution_id,
                fences[place],
                ExecutionEvent(events[place]),
                started_at=started_ats[place],
                delay_seconds=delays[place],
                dead_letter=dead[place] and DeadLetterReason(dead[place]),
            ),
        }


def expire(store: SimulatedStore, limit: int, *rest: Any) -> list[Columns]:  # noqa: ANN401
    moment = rest[-1] or store.now
    ended = sorted(passes.late(store, moment))[:limit]
    passes.expire(store, ended, moment, alone=False)
    store.counts["expired"] += len(ended)
    return [{"id": one} for one in ended]


READS: Final[Mapping[str, Statement]] = {
    "shards/read": read_leases,
    "schema/read_clock": read_clock,
    "workers/read_hearing": read_clock,
    "jobs/stage_due": stage_due,
    "executions/read_next_release": read_next_release,
    "executions/list_left": list_lost,
    "executions/list_lost": list_lost,
    "executions/list_overdue": list_overdue,
}
CHANGES: Final[Mapping[str, Statement]] = {
    "shards/renew": renew,
    "shards/take": take,
    "shards/give": give,
    "jobs/fire_due": fire_due,
    "executions/release_due": release_due,
    "executions/release_overlaps": release_overlaps,
    "limits/admit_held": admit_held,
    "workers/bury_silent": bury_silent,
    "executions/rescue": rescue,
    "executions/expire": expire,
}
