"""Steps by which people and workers come, go and change their minds."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from foliot.core.errors import FoliotError, IllegalTransition, JobNotFound
from foliot.core.ids import ExecutionId, JobId, TenantId, WorkerId
from foliot.core.limits import Limit, key_text
from foliot.core.model import Job
from foliot.core.states import WorkerState
from foliot.store import jobs as store
from foliot.store.admitting import put_limits
from foliot.store.database import Database
from foliot.store.queue_clocks import forget_clocks
from foliot.store.workers import (
    Beat,
    WorkerProfile,
    beat,
    bury_silent,
    deregister,
    drain,
    register,
)
from foliot.testing.database import sql
from foliot.testing.model import jobs, passes
from foliot.testing.model.ground import HANDLERS
from foliot.testing.model.state import StoreModel, WorkerRecord, same, within
from foliot.testing.model.steps import Step, Trait

_PAUSE_QUEUE: Final = sql(
    "insert into foliot.queues (name, paused_at) values ($1, $2)"
    " on conflict (name) do update set paused_at = excluded.paused_at"
)


class Change(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"


_MODEL: Final[Mapping[Change, Callable[[StoreModel, TenantId, JobId, datetime], None]]] = {
    Change.PAUSE: jobs.pause,
    Change.RESUME: jobs.resume,
    Change.DELETE: jobs.delete,
}
_STORE: Final = {
    Change.PAUSE: store.pause,
    Change.RESUME: store.resume,
    Change.DELETE: store.delete,
}


@dataclass(frozen=True, slots=True)
class ChangeJob(Step["type[FoliotError] | None"]):
    """All of `job` is new in a CREATE or UPDATE; the others need to know which it is. `replaces` is
    what its overlap policy says when the change begins."""

    change: Change
    job: Job
    replaces: bool
    now: datetime

    @property
    def traits(self) -> frozenset[Trait]:
        found = {Trait.REPLACES, Trait.HOLDS} if self.replaces else set()
        if self.change in (Change.CREATE, Change.UPDATE, Change.DELETE):
            found.add(Trait.LIMITS)
        if self.change is Change.DELETE:
            found |= {Trait.DELETES, Trait.HOLDS}
        return frozenset(found)

    async def run(self, database: Database) -> type[FoliotError] | None:
        job, now = self.job, self.now
        try:
            if self.change is Change.CREATE:
                await store.create(database, job, changed_by="test", now=now)
            elif self.change is Change.UPDATE:
                await store.update(database, job, changed_by="test", now=now)
            else:
                change = _STORE[self.change]
                await change(database, job.tenant_id, job.job_id, changed_by="test", now=now)
        except (JobNotFound, IllegalTransition) as error:
            return type(error)
        return None

    def tell(
        self, model: StoreModel, answer: type[FoliotError] | None, *, alone: bool
    ) -> Iterator[str]:
        del alone
        trial = model.copy()
        try:
            self._apply(trial)
        except (JobNotFound, IllegalTransition) as error:
            same(answer, type(error), f"{self.change} {self.job.job_id}")
            yield f"{self.change}: {type(error).__name__}"
            return
        same(answer, None, f"{self.change} {self.job.job_id}")
        self._apply(model)
        yield f"{self.change}: done"

    def _apply(self, model: StoreModel) -> None:
        job, now = self.job, self.now
        if self.change is Change.CREATE:
            jobs.create(model, job, now)
        elif self.change is Change.UPDATE:
            jobs.update(model, job, now)
        else:
            _MODEL[self.change](model, job.tenant_id, job.job_id, now)


@dataclass(frozen=True, slots=True)
class PutLimit(Step[None]):
    """`limit` as it is, or taken away."""

    limit: Limit
    lifted: bool

    @property
    def traits(self) -> frozenset[Trait]:
        return frozenset({Trait.LIMITS})

    async def run(self, database: Database) -> None:
        if self.lifted:
            await put_limits(database, lifted=[self.limit.key])
        else:
            await put_limits(database, [self.limit])

    def tell(self, model: StoreModel, answer: None, *, alone: bool) -> Iterator[str]:
        del answer, alone
        key = key_text(self.limit.key)
        before = model.limits.pop(key, None)
        if not self.lifted:
            model.limits[key] = self.limit.at_most
        if before != model.limits.get(key):
            yield "limit: lifted" if self.lifted else "limit: set"


@dataclass(frozen=True, slots=True)
class PauseQueue(Step[None]):
    queue: str
    paused: bool
    now: datetime

    async def run(self, database: Database) -> None:
        await database.execute(_PAUSE_QUEUE, self.queue, self.now if self.paused else None)

    def tell(self, model: StoreModel, answer: None, *, alone: bool) -> Iterator[str]:
        del answer, alone
        (model.paused_queues.add if self.paused else model.paused_queues.discard)(self.queue)
        yield "queue: paused" if self.paused else "queue: goes on"


@dataclass(frozen=True, slots=True)
class ForgetClocks(Step[int]):
    """What is forgotten is never asked for again: nothing changes for the model."""

    now: datetime

    async def run(self, database: Database) -> int:
        return await forget_clocks(database, self.now)

    def tell(self, model: StoreModel, answer: int, *, alone: bool) -> Iterator[str]:
        del model, alone
        yield from ("clocks: forgotten" for _ in range(answer))


@dataclass(frozen=True, slots=True)
class Register(Step[None]):
    worker_id: WorkerId
    tenant_id: TenantId | None
    now: datetime

    async def run(self, database: Database) -> None:
        profile = WorkerProfile("worker", "host", "0", ["*"], 10, self.tenant_id, handlers=HANDLERS)
        await register(database, self.worker_id, profile, self.now)

    def tell(self, model: StoreModel, answer: None, *, alone: bool) -> Iterator[str]:
        del answer, alone
        model.workers[self.worker_id] = WorkerRecord(self.now, self.tenant_id)
        yield "worker: registered"


@dataclass(frozen=True, slots=True)
class BeatOnce(Step["Beat | None"]):
    """A worker says which of what it holds it has begun, and hears of those and what it has claimed
    since about its last beat."""

    worker_id: WorkerId
    started: frozenset[ExecutionId]
    now: datetime

    async def run(self, database: Database) -> Beat | None:
        return await beat(database, self.worker_id, sorted(self.started), self.now)

    def tell(self, model: StoreModel, answer: Beat | None, *, alone: bool) -> Iterator[str]:
        del alone
        worker = model.workers[self.worker_id]
        if answer is None or worker.status is WorkerState.DEAD:
            same(answer, None, "answer to a dead worker")
            same(worker.status, WorkerState.DEAD, "worker whose heartbeat is refused")
            yield "beat: dead"
            return
        same(answer.status, worker.status, "status of a worker")
        since = worker.last_beat - timedelta(seconds=60)
        held = sorted(
            (row.execution_id, row.fence, row.cancel_requested)
            for row in model.live.values()
            if row.worker_id == self.worker_id
            and row.claimed_at
            and (row.claimed_at >= since or row.execution_id in self.started)
        )
        told = [(one.execution_id, one.fence, one.cancel_requested) for one in answer.held]
        same(told, held, "what a worker holds")
        worker.last_beat, worker.started = max(worker.last_beat, self.now), self.started
        yield "beat: alive"


class Leave(StrEnum):
    DRAIN = "drain"
    DEREGISTER = "deregister"


@dataclass(frozen=True, slots=True)
class LeaveWork(Step[bool]):
    worker_id: WorkerId
    how: Leave
    started: frozenset[ExecutionId]

    async def run(self, database: Database) -> bool:
        if self.how is Leave.DRAIN:
            return await drain(database, self.worker_id)
        return await deregister(database, self.worker_id, sorted(self.started))

    def tell(self, model: StoreModel, answer: bool, *, alone: bool) -> Iterator[str]:
        del alone
        worker = model.workers[self.worker_id]
        if self.how is Leave.DRAIN:
            same(answer, worker.status is WorkerState.ACTIVE, "drained")
            worker.status = WorkerState.DRAINING if answer else worker.status
        else:
            same(answer, worker.status is not WorkerState.DEAD, "deregistered")
            if answer:
                worker.status, worker.started = WorkerState.DEAD, self.started
        yield f"worker: {self.how if answer else 'left before'}"


@dataclass(frozen=True, slots=True)
class Bury(Step["tuple[WorkerId, ...]"]):
    now: datetime

    async def run(self, database: Database) -> tuple[WorkerId, ...]:
        return await bury_silent(database, now=self.now)

    def tell(
        self, model: StoreModel, answer: tuple[WorkerId, ...], *, alone: bool
    ) -> Iterator[str]:
        (same if alone else within)(set(answer), passes.silent(model, self.now), "buried")
        for worker_id in answer:
            model.workers[worker_id].status = WorkerState.DEAD
            yield "worker: buried"
