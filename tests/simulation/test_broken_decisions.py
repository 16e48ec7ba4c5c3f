"""A world in which one decision is wrong is found out: a simulation that finds nothing in those
proves nothing in the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from types import MappingProxyType
from typing import Any, Final

import pytest

from chaos.simulation import database, following, scheduler_statements
from chaos.simulation.engine import BEGAN, Node
from chaos.simulation.firing import fires_of
from chaos.simulation.run import Failed, run_seed
from chaos.simulation.store import SimulatedStore
from foliot.core import lease, retry
from foliot.core.ids import JobId, SchedulerId, WorkerId
from foliot.core.model import RetryPolicy
from foliot.core.states import ExecutionEvent, ExecutionState, WorkerState
from foliot.runtime.server_time import ServerTime
from foliot.scheduler import shards, watching
from foliot.store.claiming import Claim
from foliot.store.enqueuing import Enqueued
from foliot.store.finishing import Outcome
from foliot.testing.model import jobs, passes, requests, work
from foliot.testing.model.state import StoreModel
from foliot.worker import verdicts

WORLDS: Final = 800

Patch = pytest.MonkeyPatch
Break = Callable[[Patch], None]
Finish = Callable[[StoreModel, WorkerId, Outcome, datetime], ExecutionState | None]


def no_fence_on_finish(patch: Patch) -> None:
    """Whoever holds it, and also if nobody does."""
    right: Finish = work.finish

    def finish(
        model: StoreModel, worker_id: WorkerId, outcome: Outcome, now: datetime
    ) -> ExecutionState | None:
        row = model.live.get(outcome.execution_id)
        is_success = outcome.event is ExecutionEvent.SUCCEED
        if row is None or row.cancel_requested or not is_success:
            return right(model, worker_id, outcome, now)
        model.end(row, ExecutionState.SUCCEEDED)
        return ExecutionState.SUCCEEDED

    patch.setattr(work, "finish", finish)


def takeover_before_the_lease_runs_out(patch: Patch) -> None:
    right: Callable[..., lease.Sharing] = lease.share

    def share(
        node: SchedulerId, leases: Sequence[lease.Lease], *rest: object, takeovers: bool
    ) -> lease.Sharing:
        over = [replace(one, expires_at=BEGAN if one.owner else None) for one in leases]
        return right(node, over, *rest, takeovers=takeovers)

    patch.setattr(shards, "share", share)
    patch.setattr(scheduler_statements, "is_free", lambda *_: True)


def no_grace_after_an_outage(patch: Patch) -> None:
    for module in (watching, shards):
        patch.setattr(module, "may_judge", lambda watch, *_: watch is not None)


def rescue_without_regard_to_heartbeats(patch: Patch) -> None:
    def silent(model: StoreModel, _: datetime) -> set[WorkerId]:
        return {one for one, each in model.workers.items() if each.status is not WorkerState.DEAD}

    patch.setattr(passes, "silent", silent)


def attempt_not_counted_by_the_claim(patch: Patch) -> None:
    right: Callable[..., None] = work.claim

    def claim(
        model: StoreModel, request: object, claims: Sequence[Claim], *rest: object, alone: bool
    ) -> None:
        right(model, request, claims, *rest, alone=alone)
        for one in claims:
            model.live[one.execution_id].attempt_number -= 1

    patch.setattr(work, "claim", claim)


def epoch_stays_the_same(patch: Patch) -> None:
    right: Callable[..., list[dict[str, Any]]] = scheduler_statements.take

    def take(store: SimulatedStore, *rest: object) -> list[dict[str, Any]]:
        taken = right(store, *rest)
        for row in taken:
            held = store.leases[row["shard"]]
            store.leases[row["shard"]] = replace(held, epoch=held.epoch - 1)
        return taken

    patch.setitem(database.CHANGES, "shards/take", take)


def edit_without_settling_first(patch: Patch) -> None:
    patch.setattr(jobs, "settle", lambda *_: None)


def retry_without_bound(patch: Patch) -> None:
    right: Callable[..., retry.RetryDecision] = retry.decide

    def decide(policy: RetryPolicy, *rest: object, **options: object) -> retry.RetryDecision:
        return right(replace(policy, max_attempts=1000), *rest, **options)

    patch.setattr(verdicts, "decide", decide)


def marker_committed_before_the_executions(patch: Patch) -> None:
    """And now and then the process dies in between."""
    right: Callable[..., tuple[list[int], list[int]] | None] = scheduler_statements.fire_due
    calls = count(1)

    def fire_due(store: SimulatedStore, *columns: object) -> tuple[list[int], list[int]] | None:
        if next(calls) % 20:
            return right(store, *columns)
        for one in fires_of(store, columns):
            if jobs.is_as_seen(store, one):
                record = store.jobs[one.job_id]
                record.next_instant, record.last_instant = one.next_instant, one.settled
        return [], []

    patch.setitem(database.CHANGES, "jobs/fire_due", fire_due)


def fire_without_comparing(patch: Patch) -> None:
    patch.setattr(jobs, "is_as_seen", lambda *_: True)


def local_wall_clock_decides(patch: Patch) -> None:
    def now(self: ServerTime) -> datetime:
        assert isinstance(self._clock, Node)
        return self._clock.wall()

    patch.setattr(ServerTime, "now", now)


def cancellation_overruled_by_the_worker(patch: Patch) -> None:
    right: Finish = work.finish

    def finish(
        model: StoreModel, worker_id: WorkerId, outcome: Outcome, now: datetime
    ) -> ExecutionState | None:
        row = model.live.get(outcome.execution_id)
        if row is not None:
            row.cancel_requested = False
        return right(model, worker_id, outcome, now)

    patch.setattr(work, "finish", finish)


def slots_given_out_without_counting(patch: Patch) -> None:
    patch.setattr(passes, "has_room", lambda *_: True)


def nobody_is_ever_buried(patch: Patch) -> None:
    patch.setattr(watching, "may_judge", lambda *_: False)


def children_told_without_a_lock(patch: Patch) -> None:
    def lock_children(store: SimulatedStore, session: object, _: datetime | None) -> list[JobId]:
        children = sorted({each.child_id for each in store.completions})
        store.locked |= dict.fromkeys(children, (session, store.now))
        return children

    patch.setattr(following, "lock_children", lock_children)
    patch.setattr(following, "IDLE", timedelta(days=1))
    patch.setattr(database.SimulatedSession, "_keep_locks", lambda _: None)


def requests_forgotten(patch: Patch) -> None:
    right: Callable[..., list[Enqueued]] = requests.ask

    def ask(model: StoreModel, *rest: object) -> list[Enqueued]:
        model.requests.clear()
        return right(model, *rest)

    patch.setattr(requests, "ask", ask)


def executions_forgotten_by_the_release(patch: Patch) -> None:
    patch.setattr(passes, "due", lambda *_: [])


# By what is wrong, the words in which it is found.
BROKEN: Final[Mapping[Break, str]] = MappingProxyType(
    {
        no_fence_on_finish: "a stale SUCCEED was written|went from [A-Z]+ to SUCCEEDED",
        takeover_before_the_lease_runs_out: "was taken from an owner whose lease ran",
        no_grace_after_an_outage: "was alive and undisturbed, and (lost shard|was buried)",
        rescue_without_regard_to_heartbeats: "was alive and undisturbed, and was buried",
        attempt_not_counted_by_the_claim: "counts 0 attempts and had 1",
        epoch_stays_the_same: "epoch 0 after 0",
        edit_without_settling_first: "instants are settled of",
        retry_without_bound: "is tried again after",
        marker_committed_before_the_executions: "instants are settled of",
        fire_without_comparing: "was settled twice|instants are settled of|was there before",
        local_wall_clock_decides: "was settled before its time",
        cancellation_overruled_by_the_worker: "was to be cancelled and was not",
        slots_given_out_without_counting: "hold a slot of",
        nobody_is_ever_buried: "is RUNNING .* and stays so",
        children_told_without_a_lock: "fired twice for the end of",
        requests_forgotten: "was there before|was answered with",
        executions_forgotten_by_the_release: "is [A-Z]+ .* and stays so",
    }
)


def simulate() -> None:
    for number in range(WORLDS):
        run_seed(number)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("broken", "words"), BROKEN.items(), ids=[broken.__name__ for broken in BROKEN]
)
def test_a_broken_decision_is_found(
    broken: Break, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    with pytest.raises(Failed, match=words):
        simulate()
