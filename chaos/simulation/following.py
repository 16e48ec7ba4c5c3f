"""What the statements do that tell children of their parents' ends, in one transaction.

A child is locked from the moment it is gathered until the transaction ends, others pass over it,
and nothing changes before the commit. A session that stands still inside is ended by the server
after two seconds, and its locks are free. Children here all allow overlaps: the policies are those
of scheduled fires, which the model has.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from chaos.simulation.engine import Violation
from chaos.simulation.scheduler_statements import Columns
from chaos.simulation.store import SimulatedStore, Told, schedule_text
from foliot.core.ids import ExecutionId, JobId
from foliot.core.model import Trigger
from foliot.core.schedule.after import Completion

IDLE: Final = timedelta(seconds=2)
Deed = Callable[[], None]


def read_news(store: SimulatedStore, low: datetime | None, now: datetime | None) -> Columns:
    found = any(low is None or each.completion.finished_at >= low for each in store.completions)
    return {"news": found, "moment": now or store.now}


def lock_children(store: SimulatedStore, session: object, low: datetime | None) -> list[JobId]:
    """Those that something is to be told to and that nobody has."""
    wanted = {
        each.child_id
        for each in store.completions
        if low is None or each.completion.finished_at >= low
    }
    children = []
    for child_id in sorted(wanted):
        holder, since = store.locked.get(child_id, (None, store.now))
        if holder is None or holder is session or store.now - since > IDLE:
            store.locked[child_id] = (session, store.now)
            children.append(child_id)
    return children


def gather(store: SimulatedStore, children: Sequence[JobId]) -> tuple[list[Columns], Deed]:
    """What each child knows then, and what the commit changes."""
    rows, told = [], [each for each in store.completions if each.child_id in children]
    known = {child_id: dict(store.told[child_id]) for child_id in children}
    for each in told:
        known[each.child_id][each.completion.job_id] = each.completion
    for child_id in children:
        ends = list(known[child_id].values())
        rows.append(
            {
                "child_id": child_id,
                "child_status": store.jobs[child_id].status,
                "schedule": schedule_text(store.jobs[child_id].job.schedule),
                "parent_ids": [end.job_id for end in ends],
                "execution_ids": [end.execution_id for end in ends],
                "statuses": [end.status for end in ends],
                "finished_ats": [end.finished_at for end in ends],
                "read_rows": len(told),
                "moment": store.now,
            }
        )

    def tell() -> None:
        _tell(store, told, known)

    return rows, tell


def _tell(
    store: SimulatedStore,
    told: Sequence[Told],
    known: dict[JobId, dict[JobId, Completion]],
) -> None:
    store.completions = [each for each in store.completions if each not in told]
    store.told.update(known)


def follow(store: SimulatedStore, columns: Sequence[Any]) -> tuple[list[Columns], Deed]:
    job_ids, execution_ids, instants, reasons, _ = columns

    def fire() -> None:
        for place, job_id in enumerate(job_ids):
            _fire(store, job_id, execution_ids[place], instants[place], reasons[place])

    outcomes = ["SKIP" if reason else "START" for reason in reasons]
    rows = zip(job_ids, outcomes, strict=True)
    return [{"child_id": job_id, "outcome": outcome} for job_id, outcome in rows], fire


def _fire(
    store: SimulatedStore,
    job_id: JobId,
    execution_id: ExecutionId,
    instant: datetime,
    reason: str | None,
) -> None:
    """Each end of a parent is the cause of one fire at the most."""
    for end in store.told.pop(job_id).values():
        if (job_id, end.execution_id) in store.causes:
            raise Violation(f"{job_id} fired twice for the end of {end.execution_id}")
        store.causes.add((job_id, end.execution_id))
    if reason is None:
        record = store.jobs[job_id]
        record.fired_count += 1
        store.counts["followed"] += 1
        record.last_instant = max(record.last_instant or instant, instant)
        store.add(record, execution_id, Trigger.AFTER, instant, max(instant, store.now))
