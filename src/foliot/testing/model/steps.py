"""One operation of the store as a value: run it on a connection, then tell the model what it
answered.

A step that is alone must do all there is to do. In a race it may leave out what the other has in
hand, because passes come again: what it did is then taken from its answer, and checked to be
allowed.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Any, Final, Generic, TypeVar

from foliot.core.errors import FoliotError
from foliot.core.ids import ExecutionId, TenantId, WorkerId
from foliot.core.schedule.timeline import TICK
from foliot.store.admitting import AdmitReport, admit_held
from foliot.store.cancelling import Cancellation, cancel
from foliot.store.claiming import Claim, ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.enqueuing import Enqueued, Request, backfill, enqueue
from foliot.store.expiring import expire
from foliot.store.finishing import FinishReport, Outcome, finish
from foliot.store.firing import FireReport, JobFire, fire_batch
from foliot.store.releasing import OverlapReport, ReleaseReport, release_due, release_overlaps
from foliot.store.rescuing import RescueReport, rescue_lost
from foliot.store.staging import DueJob, stage_due
from foliot.testing.model import jobs, passes, requests, work
from foliot.testing.model.state import StoreModel, same, within

Answer = TypeVar("Answer")


class Trait(Enum):
    """What decides whether two steps at once are as good as one after the other."""

    ENDS = auto()  # executions that run or wait
    HOLDS = auto()  # rows that wait for a claim, which then passes over them
    REPLACES = auto()  # what a job has under way, by a newer instant
    LIMITS = auto()  # are set
    SLOTS = auto()  # are given out
    CLAIMS = auto()
    DELETES = auto()  # a job


# A fire that replaces goes by what it sees, and finds nothing to cancel if that ends meanwhile: its
# own execution then waits for the next pass. Slots are counted before the rows are read. Deleting a
# job asks what is claimed at that very moment to stop.
_CLASHES: Final = (
    (Trait.REPLACES, Trait.ENDS),
    (Trait.LIMITS, Trait.SLOTS),
    (Trait.LIMITS, Trait.LIMITS),
    (Trait.DELETES, Trait.CLAIMS),
)


class Step(ABC, Generic[Answer]):
    """`tell` yields a word for everything that the step has brought about."""

    @property
    def traits(self) -> frozenset[Trait]:
        return frozenset()

    @property
    def in_hand(self) -> frozenset[ExecutionId]:
        """What it locks although it may not change it: others pass over these."""
        return frozenset()

    @abstractmethod
    async def run(self, database: Database) -> Answer: ...

    @abstractmethod
    def tell(self, model: StoreModel, answer: Answer, *, alone: bool) -> Iterator[str]: ...

    def is_alone_beside(self, other: "Step[Any]") -> bool:
        """Whether it does all there is to do although the other is at work."""
        del other
        return False


AnyStep = Step[Any]


def may_race(one: AnyStep, other: AnyStep) -> bool:
    """Whether what both do at once is what they do in one order or the other."""
    pairs = ((one.traits, other.traits), (other.traits, one.traits))
    clash = any(a in first and b in second for a, b in _CLASHES for first, second in pairs)
    return one == other or not clash


@dataclass(frozen=True, slots=True)
class Stage(Step[list[DueJob]]):
    """Changes nothing: what is due is what the model says, row by row."""

    now: datetime

    async def run(self, database: Database) -> list[DueJob]:
        high = self.now + TICK
        return await stage_due(database, range(64), low=None, high=high, limit=1000)

    def tell(self, model: StoreModel, answer: list[DueJob], *, alone: bool) -> Iterator[str]:
        order = [one.next_run_at for one in answer]
        same(order, sorted(order), "order of what is due")
        if alone:
            by_id = {one.job_id: one for one in answer}
            same(by_id, {one.job_id: one for one in jobs.due(model, self.now)}, "due")
        yield from ()


@dataclass(frozen=True, slots=True)
class Fire(Step[FireReport]):
    batch: tuple[JobFire, ...]
    take: bool
    now: datetime

    @property
    def traits(self) -> frozenset[Trait]:
        replaces = any(one.replaces for one in self.batch)
        return frozenset({Trait.REPLACES, Trait.HOLDS} if replaces else ())

    async def run(self, database: Database) -> FireReport:
        return await fire_batch(database, self.batch, take=self.take, now=self.now)

    def tell(self, model: StoreModel, answer: FireReport, *, alone: bool) -> Iterator[str]:
        same(answer.refused, (), "refused")
        applied = {one.job_id for one in answer.applied}
        as_seen = {one.job_id for one in self.batch if jobs.is_as_seen(model, one)}
        (same if alone else within)(applied, as_seen, "fired")
        fired = [one for one in self.batch if one.job_id in applied]
        yield from (f"fire {decision}" for decision in jobs.fire(model, fired, self.now))
        yield from ("fire: missed" for one in fired for _ in one.skips)
        yield from ("fire: passed over" for _ in answer.passed_over)
        yield from (
            "fire: completed" for one in fired if model.jobs[one.job_id].next_instant is None
        )


@dataclass(frozen=True, slots=True)
class Ask(Step["list[Enqueued] | type[FoliotError]"]):
    """Enqueue or backfill."""

    request: Request
    contents: requests.Contents
    now: datetime

    @property
    def traits(self) -> frozenset[Trait]:
        wanted = () if isinstance(self.contents, requests.Instants) else self.contents
        return frozenset({Trait.LIMITS} if any(one.concurrency for one in wanted) else ())

    async def run(self, database: Database) -> list[Enqueued] | type[FoliotError]:
        try:
            if not isinstance(self.contents, requests.Instants):
                return await enqueue(database, self.request, self.contents, self.now)
            return await backfill(
                database,
                self.request,
                self.contents.job_id,
                self.contents.instants,
                rerun=self.contents.rerun,
                now=self.now,
            )
        except FoliotError as error:
            return type(error)

    def tell(
        self, model: StoreModel, answer: list[Enqueued] | type[FoliotError], *, alone: bool
    ) -> Iterator[str]:
        del alone
        word = "backfill" if isinstance(self.contents, requests.Instants) else "enqueue"
        try:
            expected = requests.ask(model, self.request, self.contents, self.now)
        except FoliotError as error:
            same(answer, type(error), word)
            yield f"{word}: {type(error).__name__}"
            return
        same(answer, expected, word)
        for one in expected:
            yield f"{word}: {'replayed' if one.replayed else one.outcome}"


@dataclass(frozen=True, slots=True)
class Release(Step[ReleaseReport]):
    low: datetime | None
    now: datetime

    async def run(self, database: Database) -> ReleaseReport:
        return await release_due(database, self.low, now=self.now)

    def tell(self, model: StoreModel, answer: ReleaseReport, *, alone: bool) -> Iterator[str]:
        del alone
        rows = passes.due(model, self.low, self.now)
        if answer.released + answer.held < len(rows):
            rows = [row for row in rows if row.execution_id not in model.in_hand]
        released, held = passes.release(model, rows)
        same((answer.released, answer.held), (released, held), "released and held")
        yield from ["release: queued"] * released + ["release: parked"] * held


@dataclass(frozen=True, slots=True)
class ReleaseOverlaps(Step[OverlapReport]):
    now: datetime

    async def run(self, database: Database) -> OverlapReport:
        return await release_overlaps(database, now=self.now)

    def tell(self, model: StoreModel, answer: OverlapReport, *, alone: bool) -> Iterator[str]:
        passes.release_overlaps(model, answer.released, self.now, alone=alone)
        for one in answer.released:
            yield f"overlap: {model.live[one].hold or 'queued'}"


@dataclass(frozen=True, slots=True)
class Admit(Step[AdmitReport]):
    batch: int
    now: datetime

    @property
    def traits(self) -> frozenset[Trait]:
        return frozenset({Trait.SLOTS})

    async def run(self, database: Database) -> AdmitReport:
        return await admit_held(database, batch=self.batch, now=self.now)

    def tell(self, model: StoreModel, answer: AdmitReport, *, alone: bool) -> Iterator[str]:
        passes.admit(model, answer.admitted, self.batch, alone=alone)
        yield from ("admit: admitted" for _ in answer.admitted)
        if alone and len(answer.admitted) < self.batch:
            yield from ("admit: full" for _ in passes.held(model))


@dataclass(frozen=True, slots=True)
class ClaimNext(Step[tuple[Claim, ...]]):
    request: ClaimRequest
    now: datetime

    @property
    def traits(self) -> frozenset[Trait]:
        return frozenset({Trait.CLAIMS})

    def is_alone_beside(self, other: AnyStep) -> bool:
        return Trait.HOLDS not in other.traits

    async def run(self, database: Database) -> tuple[Claim, ...]:
        return await claim(database, self.request, self.now)

    def tell(self, model: StoreModel, answer: tuple[Claim, ...], *, alone: bool) -> Iterator[str]:
        work.claim(model, self.request, answer, self.now, alone=alone)
        shared = model.workers[self.request.worker_id].tenant_id is None
        yield from ("claim: shared" if shared else "claim: of a tenant" for _ in answer)


@dataclass(frozen=True, slots=True)
class Finish(Step[FinishReport]):
    worker_id: WorkerId
    outcomes: tuple[Outcome, ...]
    now: datetime

    @property
    def traits(self) -> frozenset[Trait]:
        return frozenset({Trait.ENDS, Trait.HOLDS})

    @property
    def in_hand(self) -> frozenset[ExecutionId]:
        return frozenset(outcome.execution_id for outcome in self.outcomes)

    async def run(self, database: Database) -> FinishReport:
        return await finish(database, self.worker_id, self.outcomes, self.now)

    def tell(self, model: StoreModel, answer: FinishReport, *, alone: bool) -> Iterator[str]:
        del alone
        same(answer.refused, {}, "refused")
        for outcome in self.outcomes:
            state = work.finish(model, self.worker_id, outcome, self.now)
            same(answer.written.get(outcome.execution_id), state, f"end of {outcome}")
            same(outcome.execution_id in answer.superseded, state is None, f"end of {outcome}")
            yield f"finish {outcome.event}: {state or 'superseded'}"


@dataclass(frozen=True, slots=True)
class Cancel(Step["dict[ExecutionId, Cancellation]"]):
    tenant_id: TenantId
    execution_ids: tuple[ExecutionId, ...]
    now: datetime

    @property
    def traits(self) -> frozenset[Trait]:
        return frozenset({Trait.ENDS, Trait.HOLDS})

    async def run(self, database: Database) -> dict[ExecutionId, Cancellation]:
        return await cancel(database, self.tenant_id, self.execution_ids, "no", self.now)

    def tell(
        self, model: StoreModel, answer: dict[ExecutionId, Cancellation], *, alone: bool
    ) -> Iterator[str]:
        del alone
        for one in self.execution_ids:
            expected = work.cancel(model, one, self.tenant_id)
            same(answer[one], expected, f"cancellation of {one}")
            yield f"cancel: {expected}"


@dataclass(frozen=True, slots=True)
class Expire(Step["tuple[ExecutionId, ...]"]):
    now: datetime

    @property
    def traits(self) -> frozenset[Trait]:
        return frozenset({Trait.ENDS, Trait.HOLDS})

    async def run(self, database: Database) -> tuple[ExecutionId, ...]:
        return await expire(database, now=self.now)

    def tell(
        self, model: StoreModel, answer: tuple[ExecutionId, ...], *, alone: bool
    ) -> Iterator[str]:
        passes.expire(model, answer, self.now, alone=alone)
        yield from ("expire: ended" for _ in answer)


@dataclass(frozen=True, slots=True)
class Rescue(Step[RescueReport]):
    now: datetime

    @property
    def traits(self) -> frozenset[Trait]:
        return frozenset({Trait.ENDS})

    async def run(self, database: Database) -> RescueReport:
        return await rescue_lost(database, now=self.now)

    def tell(self, model: StoreModel, answer: RescueReport, *, alone: bool) -> Iterator[str]:
        (same if alone else within)(set(answer.changed), work.lost(model), "rescued")
        for one, found in answer.changed.items():
            alone_before = model.live[one].run_alone
            state = work.rescue(model, one, self.now)
            same(found, state, f"rescue of {one}")
            crashed = one in model.live and model.live[one].run_alone
            yield f"rescue: {state}{' alone' if crashed else ''}{' again' if alone_before else ''}"
