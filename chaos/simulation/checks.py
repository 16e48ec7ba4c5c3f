"""What must be true after every commit, and what must have come about in the end.

Small and of their own: they read the rows, the leases and what became of each instant, and not the
decisions that led there.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Final

from chaos.simulation.engine import Violation
from chaos.simulation.scheduler_statements import check_missed
from chaos.simulation.store import LEGAL, Settled, SimulatedStore, Stretch
from foliot.core.ids import ExecutionId, JobId, SchedulerId
from foliot.core.lease import Lease
from foliot.core.schedule.after import Fire, decide
from foliot.core.schedule.occurrences import BEGINNING, ScheduleFacts, timeline
from foliot.core.schedule.timeline import TICK
from foliot.core.states import ExecutionState, JobState
from foliot.testing.model import passes
from foliot.testing.model.state import JobRecord, Row

OVERDUE_SECONDS: Final = 6.0


class Checks:
    """Remembers how it was after the last commit."""

    def __init__(self, store: SimulatedStore) -> None:
        self._store = store
        self._leases = dict(store.leases)
        self._owners: dict[tuple[int, int], SchedulerId] = {}
        self._rows: dict[ExecutionId, tuple[ExecutionState, int]] = {}
        self._holders: Counter[str] = Counter()
        self._to_stop: set[ExecutionId] = set()

    def after_commit(self) -> None:
        store = self._store
        if store.news:
            self._check_instants()
        if store.leases != self._leases:
            self._check_leases()
        self._check_rows()

    def _check_instants(self) -> None:
        """Of each job later ones than all before, none before its time, none twice."""
        news, self._store.news = self._store.news, []
        by_job: dict[JobId, list[Settled]] = {}
        for job_id, settled in news:
            by_job.setdefault(job_id, []).append(settled)
        for job_id, found in by_job.items():
            known = self._store.settled[job_id]
            last = known[-1].last if known else BEGINNING
            for each in sorted(found, key=lambda one: one.first):
                if each.first <= last:
                    raise Violation(f"job {job_id}: {each.first} was settled twice")
                if each.last > self._store.now:
                    raise Violation(f"job {job_id}: {each.last} was settled before its time")
                last = each.last
                known.append(each)
                self._store.counts["fired" if each.fired else "skipped"] += each.count

    def _check_leases(self) -> None:
        for shard, lease in self._store.leases.items():
            before = self._leases[shard]
            if lease is before:
                continue
            if lease.owner != before.owner and lease.owner is not None:
                self._check_taken(before, lease)
                self._leases[shard] = lease
            elif lease.epoch != before.epoch:
                raise Violation(f"shard {shard}: the epoch changed without an owner")
            self._leases[shard] = lease

    def _check_taken(self, before: Lease, lease: Lease) -> None:
        """Under a new epoch, and only what was free or had run out."""
        if lease.epoch <= before.epoch:
            raise Violation(f"shard {lease.shard}: epoch {lease.epoch} after {before.epoch}")
        if before.owner and before.expires_at and self._store.now < before.expires_at:
            raise Violation(f"shard {lease.shard} was taken from an owner whose lease ran")
        if lease.owner is not None:
            known = self._owners.setdefault((lease.shard, lease.epoch), lease.owner)
            if known != lease.owner:
                raise Violation(f"shard {lease.shard}: two owners under epoch {lease.epoch}")
        if before.owner is not None:
            check_missed(self._store, before.owner, f"lost shard {lease.shard}")
            self._store.counts["taken over"] += 1

    def _check_rows(self) -> None:
        store = self._store
        rows: dict[ExecutionId, tuple[ExecutionState, int]] = {}
        holders: Counter[str] = Counter()
        for execution_id, row in store.live.items():
            self._check_row(row)
            if row.cancel_requested:
                self._to_stop.add(execution_id)
            rows[execution_id] = (row.status, row.fence)
            if row.rank is not None and row.limit_keys:
                holders.update(row.limit_keys)
        for key, most in store.limits.items():
            if holders[key] > max(most, self._holders[key]):
                raise Violation(f"{holders[key]} hold a slot of {key}, which has {most}")
        for execution_id in self._to_stop - rows.keys():
            self._to_stop.discard(execution_id)
            if store.ended[execution_id] is not ExecutionState.CANCELLED:
                raise Violation(f"{execution_id} was to be cancelled and was not")
        self._rows, self._holders = rows, holders

    def _check_row(self, row: Row) -> None:
        before = self._rows.get(row.execution_id)
        runs = row.status is ExecutionState.RUNNING
        if before == (row.status, row.fence):
            return
        self._store.changed_at[row.execution_id] = self._store.now
        self._store.changed_at[row.job_id] = self._store.now
        if before is not None:
            status, fence = before
            if (status, row.status) not in LEGAL and status is not row.status:
                raise Violation(f"{row.execution_id} went from {status} to {row.status}")
            if row.fence != fence + (runs and status is not ExecutionState.RUNNING):
                raise Violation(f"{row.execution_id}: fence {row.fence} after {fence}")
        expected = self._store.tried[row.execution_id] + runs
        if row.attempt_number != expected:
            raise Violation(
                f"{row.execution_id} counts {row.attempt_number} attempts and had {expected}"
            )
        if row.claimed_at is not None and row.claimed_at < row.available_at:
            raise Violation(f"{row.execution_id} was claimed before it was available")
        policy = row.retry_policy
        # One more for a death that is held against none: it runs alone then, whatever the count.
        if row.attempt_number > policy.max_attempts + 1:
            raise Violation(f"{row.execution_id} is at attempt {row.attempt_number}")


def unfinished(
    store: SimulatedStore, old: Collection[ExecutionId], unmoved_seconds: float = 0.0
) -> Iterator[str]:
    """What should come about, and has not yet; `old` are executions that are to be over. Where many
    wait for one slot that takes long: of those nothing has moved for so many seconds."""
    since = store.now - timedelta(seconds=unmoved_seconds)
    for record in store.jobs.values():
        yield from _overdue(store, record)
    for row in store.live.values():
        # Who waits for others of its job gets on while they do.
        is_still = store.changed_at[row.job_id if row.hold else row.execution_id] <= since
        if _is_in_line(store, row, since) or _may_wait(store, row):
            continue
        if row.execution_id in old and is_still:
            yield f"{row.execution_id} of {row.job_id} is {row.status} ({row.hold}) and stays so"
    for child_id, told in store.told.items():
        after = store.jobs[child_id].job.schedule.after
        if after is not None and isinstance(decide(after, told.values()), Fire):
            yield f"{child_id} has heard of its parents and does not fire"
    waiting = store.now - timedelta(seconds=OVERDUE_SECONDS)
    if any(each.completion.finished_at < waiting for each in store.completions):
        yield "ends of parents were told to nobody"
    for lease in store.leases.values():
        node = store.bearers.get(lease.owner) if lease.owner else None
        if not lease.is_held(store.now) or node is None or not node.is_alive:
            yield f"shard {lease.shard} has no owner that lives"


def _is_in_line(store: SimulatedStore, row: Row, since: datetime) -> bool:
    """Those before it get on, so that its turn comes."""
    return row.rank is not None and any(
        other.rank is not None
        and other.rank < row.rank
        and other.queue == row.queue
        and store.changed_at[other.execution_id] > since
        for other in store.live.values()
    )


def _overdue(store: SimulatedStore, record: JobRecord) -> Iterator[str]:
    late = store.now - timedelta(seconds=OVERDUE_SECONDS)
    if record.status is JobState.ACTIVE and record.next_run_at and record.next_run_at < late:
        yield f"job {record.job.job_id} is overdue since {record.next_run_at}"


def _may_wait(store: SimulatedStore, row: Row) -> bool:
    """For its time, for a slot that others have, or for its predecessor."""
    if row.worker_id is None and row.available_at > store.now:
        return True
    if row.hold == "OVERLAP":
        return any(each.hold != "OVERLAP" for each in store.of_job(row.job_id))
    return row.hold == "LIMIT" and not passes.has_room(store, row, passes.slots_taken(store))


def check_ledger(store: SimulatedStore) -> None:
    """Every instant of every schedule, for as long as it was in force, was fired or skipped."""
    for job_id, stretches in store.stretches.items():
        record, settled = store.jobs[job_id], store.settled[job_id]
        expected = sum(_expected(record, stretch, settled) for stretch in stretches)
        found = sum(each.count for each in settled)
        if found != expected:
            raise Violation(f"job {job_id}: {found} instants are settled of {expected}")
        for each in settled:
            if each.fired and not any(_has(record, one, each) for one in stretches):
                raise Violation(f"job {job_id} never had the instant {each.first}")


def _expected(record: JobRecord, stretch: Stretch, settled: list[Settled]) -> int:
    """One that ended by itself is counted up to its last instant, and so is the one in force."""
    since = stretch.since or BEGINNING
    until = stretch.until
    if until is None or stretch.schedule.max_runs is not None:
        ends = [each.last for each in settled if until is None or each.last <= until]
        until = max(ends, default=since)
    if until <= since:
        return 0
    return timeline(stretch.schedule, _facts(record)).count(since, until)


def _has(record: JobRecord, stretch: Stretch, each: Settled) -> bool:
    if stretch.since is not None and each.first <= stretch.since:
        return False
    if stretch.until is not None and each.first > stretch.until:
        return False
    found = timeline(stretch.schedule, _facts(record)).next(each.first - TICK)
    return found is not None and found.instant == each.first


def _facts(record: JobRecord) -> ScheduleFacts:
    return ScheduleFacts(record.job.job_id, record.counted_from)
