"""Does steps, one or two at a time, and what must come before so that they find something to do."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from foliot.core.states import ExecutionEvent, JobState, WorkerState
from foliot.store.finishing import Outcome
from foliot.testing.model import passes, work
from foliot.testing.model.brief import brief
from foliot.testing.model.changes import Leave, LeaveWork, PauseQueue
from foliot.testing.model.ground import TENANTS, Ground
from foliot.testing.model.kinds import PLANNERS, Kind
from foliot.testing.model.plans import Pick, Plans
from foliot.testing.model.referee import Referee
from foliot.testing.model.state import Disagreement, Row, StoreModel
from foliot.testing.model.steps import (
    Admit,
    AnyStep,
    Cancel,
    Expire,
    Finish,
    Release,
    ReleaseOverlaps,
    may_race,
)
from foliot.testing.model.tables import empty_tables

TICK: Final = timedelta(milliseconds=1)
SILENCE: Final = timedelta(seconds=16)


class Player:
    """Begins at a told time on emptied tables; `say` hears of every step before it is taken."""

    def __init__(self, ground: Ground, now: datetime, say: Callable[[str], object]) -> None:
        self.ground, self.say = ground, say
        self.plans = Plans(now)
        self.story: list[str] = []
        ground.runner.run(empty_tables(ground.databases[0]))
        model = StoreModel(ground.lanes, TENANTS)
        self.referee = Referee(ground.databases, model, ground.effects)

    @property
    def model(self) -> StoreModel:
        return self.referee.model

    def act(self, *steps: AnyStep | None) -> None:
        """At once; nothing else happens at the same moment."""
        given = [step for step in steps if step is not None]
        if not given:
            return
        words = "\n  at once with\n".join(f"    {brief(step)}" for step in given)
        self.say(words)
        self.story.append(words)
        try:
            self.ground.runner.run(self.referee.judge(*given))
        except Disagreement as error:
            self.ground.disagreement = "\n".join([*self.story, str(error)])
            raise
        self.plans.now += TICK

    def wait_until(self, times: Iterable[datetime | None]) -> None:
        """The first of them, if none has passed yet."""
        first = min((time for time in times if time is not None), default=self.plans.now)
        self.plans.now = max(self.plans.now, first)

    def need(self, kind: Kind, pick: Pick) -> None:
        """Bring about that a step of this kind finds something to do."""
        rows = self.model.live.values()
        match kind:
            case Kind.FIRE:
                self.need_active_job(pick)
            case Kind.BACKFILL if not any(one.last_instant for one in self.model.jobs.values()):
                self.do(Kind.FIRE, pick)
            case Kind.RELEASE:
                self.need_parked(pick)
            case Kind.EXPIRE:
                self.wait_until(row.start_by for row in rows if row.worker_id is None)
            case Kind.CLAIM:
                self.need_claimable(pick)
            case Kind.FINISH | Kind.GIVE_BACK if not any(row.worker_id for row in rows):
                self.do(Kind.CLAIM, pick)
            case Kind.RELEASE_OVERLAPS:
                self.need_turn(pick)
            case Kind.ADMIT:
                self.need_room(pick)
            case Kind.BURY:
                self.plans.now += SILENCE
            case Kind.RESCUE:
                self.need(Kind.FINISH, pick)
                self.act(self.plans.leave(self.model, pick, Leave.DEREGISTER))
            case _:
                pass

    def need_parked(self, pick: Pick) -> None:
        """A row whose time has come."""
        if not any(map(passes.is_parked, self.model.live.values())):
            self.do(Kind.GIVE_BACK, pick)
        rows = self.model.live.values()
        self.wait_until(row.available_at for row in rows if passes.is_parked(row))

    def need_active_job(self, pick: Pick) -> None:
        """One that is due."""
        if all(one.status is not JobState.ACTIVE for one in self.model.jobs.values()):
            self.act(self.plans.create_job(self.model, pick))
        active = [one for one in self.model.jobs.values() if one.status is JobState.ACTIVE]
        self.wait_until(one.next_run_at for one in active)

    def need_claimable(self, pick: Pick) -> None:
        """Through whatever stands between an execution and a claim; if there is none, ask."""
        for _ in range(4):
            model, now = self.model, self.plans.now
            if not any(worker.status is WorkerState.ACTIVE for worker in model.workers.values()):
                self.act(self.plans.register(model, pick))
            if model.paused_queues:
                self.act(self.plans.pause_queue(model, pick))
            elif model.waiting() - passes.late(model, now):
                return
            elif model.waiting():
                self.act(Expire(now))
            elif passes.due(model, None, now):
                self.act(Release(None, now))
            elif passes.someone_has_room(model):
                self.act(Admit(500, now))
            elif passes.startable(model, now):
                self.act(ReleaseOverlaps(now))
            else:
                self.act(self.plans.enqueue(model, pick))

    def end(self, rows: Iterable[Row]) -> None:
        """Well if they run, cancelled if they wait."""
        for row in list(rows):
            now = self.plans.now
            if row.worker_id is None:
                self.act(Cancel(row.tenant_id, (row.execution_id,), now))
            else:
                outcome = Outcome(row.execution_id, row.fence, ExecutionEvent.SUCCEED)
                self.act(Finish(row.worker_id, (outcome,), now))

    def need_room(self, pick: Pick) -> None:
        """For one that waits for a slot, if others have it; or else it must go on waiting."""
        for held in pick.some(passes.held(self.model), 1) if pick.below(2) else ():
            keys = set(held.limit_keys or ())
            holders = [row for row in self.model.live.values() if row.rank is not None]
            self.end([row for row in holders if keys & set(row.limit_keys or ())][:1])

    def need_turn(self, pick: Pick) -> None:
        """For one that waits until its job has nothing else under way."""
        rows = self.model.live.values()
        for held in pick.some([row for row in rows if row.hold == "OVERLAP"], 1):
            others = self.model.of_job(held.job_id)
            self.end(row for row in others if row.hold != "OVERLAP")

    def do(self, kind: Kind, pick: Pick) -> None:
        self.need(kind, pick)
        self.act(PLANNERS[kind](self.plans, self.model, pick))

    def race(self, *told: tuple[Kind, Pick]) -> None:
        """Steps of these kinds at once, where that is as good as one after the other."""
        for kind, pick in told:
            self.need(kind, pick)
        one, other = (PLANNERS[kind](self.plans, self.model, pick) for kind, pick in told)
        self.act(*([one, other] if one and other and may_race(one, other) else [one]))

    def do_twice(self, kind: Kind, pick: Pick) -> None:
        """The very same step from two connections at once."""
        self.need(kind, pick)
        step = PLANNERS[kind](self.plans, self.model, pick)
        self.act(step, step)

    def fire_what_was_staged(self, kind: Kind, pick: Pick) -> None:
        """A job changes, and then somebody fires it as it was."""
        self.do(kind, pick)
        self.act(self.plans.fire_again())

    def claim_in_vain(self, pick: Pick) -> None:
        """What waits in a queue that was paused, or for a worker that has left."""
        self.need(Kind.CLAIM, pick)
        claim = self.plans.claim(self.model, pick)
        if claim is None:
            return
        request, now = claim.request, self.plans.now
        if pick.below(2):
            self.act(PauseQueue(request.queue, paused=True, now=now))
        else:
            self.act(LeaveWork(request.worker_id, pick.of([*Leave]), frozenset()))
        self.act(replace(claim, now=self.plans.now))
        if request.queue in self.model.paused_queues:
            self.act(PauseQueue(request.queue, paused=False, now=self.plans.now))

    def cancel_what_ends(self, pick: Pick) -> None:
        """A request to cancel, just when the worker is done."""
        self.need(Kind.FINISH, pick)
        finish = self.plans.finish(self.model, pick)
        in_hand = finish.in_hand if finish else ()
        live = [self.model.live[one] for one in sorted(in_hand) if one in self.model.live]
        if live:
            ids = tuple(row.execution_id for row in live)
            both = [finish, Cancel(live[0].tenant_id, ids, self.plans.now)]
            self.act(*(both if pick.below(2) else reversed(both)))

    def cancel_what_is_claimed(self, pick: Pick) -> None:
        """A request to cancel, just when a worker takes it."""
        self.need(Kind.CLAIM, pick)
        claim = self.plans.claim(self.model, pick)
        first = work.claimable(self.model, claim.request, self.plans.now)[:1] if claim else []
        for row in first:
            cancel = Cancel(row.tenant_id, (row.execution_id,), self.plans.now)
            self.act(*((claim, cancel) if pick.below(2) else (cancel, claim)))
