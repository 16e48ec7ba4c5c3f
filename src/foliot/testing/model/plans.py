"""What could be done next: steps made up from what the model knows and a handful of chances.

The chances are bytes of a fixed number, whatever they are used for. So the shape of an example does
not depend on who won a race in it, and it can be replayed and made smaller.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Final, TypeVar
from uuid import UUID

from foliot.core.ids import ExecutionId, JobId, TenantId, WorkerId
from foliot.core.limits import Limit, job_limit, key_limit
from foliot.core.model import (
    ConcurrencyLimit,
    HandlerTarget,
    Job,
    MisfirePolicy,
    OverlapPolicy,
    RetryPolicy,
    Schedule,
    ScheduleType,
)
from foliot.core.retry import DeadLetterReason
from foliot.core.states import EXECUTION, ExecutionEvent, ExecutionState, JobState, WorkerState
from foliot.store.claiming import ClaimRequest, Look
from foliot.store.enqueuing import Request, Wanted
from foliot.store.finishing import Outcome
from foliot.store.staging import settle_due
from foliot.testing.model import jobs
from foliot.testing.model.changes import (
    BeatOnce,
    Change,
    ChangeJob,
    Leave,
    LeaveWork,
    PauseQueue,
    PutLimit,
    Register,
)
from foliot.testing.model.requests import Instants
from foliot.testing.model.state import JobRecord, Row, StoreModel
from foliot.testing.model.steps import Ask, Cancel, ClaimNext, Finish, Fire, Release

Option = TypeVar("Option")
PICKS: Final = 24
JOBS_MAX: Final = 5
PRIORITIES: Final = (5, 1, 10)  # few, so that flows meet
_ENDS: Final = sorted(event for state, event in EXECUTION if state is ExecutionState.RUNNING)
# Not told by the call that ends attempts.
_OTHERS: Final = (ExecutionEvent.LOSE, ExecutionEvent.SKIP, ExecutionEvent.HAND_OVER)
EVENTS: Final = [one for one in _ENDS if one not in _OTHERS]
_FINAL_FAILURES: Final = (ExecutionEvent.FAIL, ExecutionEvent.TIME_OUT)


class Pick:
    """Chances, used up one by one; what is left when they are all gone is the first option."""

    def __init__(self, chances: bytes) -> None:
        self.chances = chances
        self._left = iter(chances)

    def __repr__(self) -> str:
        return f"Pick({self.chances!r})"

    def below(self, number: int) -> int:
        return next(self._left, 0) % number

    def of(self, options: Sequence[Option]) -> Option:
        return options[self.below(len(options))]

    def some(self, options: Sequence[Option], most: int) -> list[Option]:
        """One to `most` different ones, in the order of the options; none of none."""
        if not options:
            return []
        first, number = self.below(len(options)), 1 + self.below(most)
        chosen = {(first + step) % len(options) for step in range(number)}
        return [options[place] for place in sorted(chosen)]


FIRST: Final = Pick(b"")


@dataclass(slots=True)
class Plans:
    """`now` moves on with every step. Remembers what can be sent once more."""

    now: datetime
    numbers: "count[int]" = field(default_factory=lambda: count(1))
    fires: deque[Fire] = field(default_factory=lambda: deque(maxlen=5))
    asks: deque[Ask] = field(default_factory=lambda: deque(maxlen=5))

    def new_id(self) -> UUID:
        return UUID(int=next(self.numbers))

    def register(self, model: StoreModel, pick: Pick) -> Register:
        tenant = pick.of([None, None, None, *model.weights])
        return Register(WorkerId(self.new_id()), tenant, self.now)

    def create_job(self, model: StoreModel, pick: Pick) -> ChangeJob | None:
        if len(_alive_jobs(model)) >= JOBS_MAX:
            return None
        tenant_id, (queue, handler) = pick.of([*model.weights]), pick.of(sorted(model.lanes))
        job_id = JobId(self.new_id())
        job = Job(
            job_id,
            tenant_id,
            f"job-{job_id}",
            _schedule(pick),
            HandlerTarget(handler),
            queue=queue,
            priority=pick.of(PRIORITIES),
            concurrency=_concurrency(pick),
            start_deadline_seconds=pick.of([None, None, 20.0]),
            retry_policy=RetryPolicy(max_attempts=1 + pick.below(3), max_crashes=1 + pick.below(2)),
            callback_url=pick.of([None, "http://test"]),
        )
        return ChangeJob(Change.CREATE, job, replaces=False, now=self.now)

    def edit_job(self, model: StoreModel, pick: Pick) -> ChangeJob | None:
        """Another schedule, another place, another priority and limit, or any of them."""
        record = self._job(model, pick)
        if record is None:
            return None
        job = record.job
        queue, handler = pick.of(sorted(model.lanes))
        edited = replace(
            job,
            schedule=pick.of([job.schedule, _schedule(pick), _other_policy(job.schedule)]),
            queue=queue,
            target=HandlerTarget(handler),
            priority=pick.of(PRIORITIES),
            concurrency=pick.of([job.concurrency, _concurrency(pick)]),
        )
        return self._change(Change.UPDATE, edited, record)

    def change_job(self, model: StoreModel, pick: Pick) -> ChangeJob | None:
        record = self._job(model, pick)
        if record is None:
            return None
        likely = Change.RESUME if record.status is JobState.PAUSED else Change.PAUSE
        change = pick.of([likely, likely, Change.PAUSE, Change.RESUME, Change.DELETE])
        return self._change(change, record.job, record)

    def _change(self, change: Change, job: Job, record: JobRecord) -> ChangeJob:
        """Somebody may have staged the job before it changes."""
        if record.due and (staged := settle_due(record.due, record.due.expected)):
            self.fires.appendleft(Fire((staged,), take=False, now=self.now))
        replaces = record.job.schedule.overlap_policy is OverlapPolicy.CANCEL_PREVIOUS
        return ChangeJob(change, job, replaces, self.now)

    def _job(self, model: StoreModel, pick: Pick) -> JobRecord | None:
        alive = _alive_jobs(model)
        return pick.of(alive) if alive else None

    def fire(self, model: StoreModel, pick: Pick) -> Fire:
        """What is due; the take is for what stays overdue."""
        staged = [settle_due(one, self.now) for one in jobs.due(model, self.now)]
        step = Fire(tuple(one for one in staged if one), pick.of([False, True]), self.now)
        self.fires.appendleft(step)
        return step

    def fire_again(self, pick: Pick = FIRST) -> Fire | None:
        """What somebody staged a while ago, or else just now; nobody fires it before its time."""
        if not self.fires:
            return None
        step = pick.of(self.fires)
        self.now = max([self.now, *(one.settled for one in step.batch)])
        return replace(step, now=self.now)

    def ask_again(self, model: StoreModel, pick: Pick) -> Ask | None:
        """The same request, or its id for another one."""
        if not self.asks:
            return None
        step = replace(pick.of(self.asks), now=self.now)
        if pick.below(2) and (other := self.enqueue(model, pick)):
            return replace(step, contents=other.contents)
        return step

    def enqueue(self, model: StoreModel, pick: Pick) -> Ask | None:
        tenant_id = pick.of(sorted({one.job.tenant_id for one in model.jobs.values()}))
        own = [one for one in model.jobs.values() if one.job.tenant_id == tenant_id]
        alive = [one for one in own if one.status is not JobState.DELETED]
        if not alive:
            return None
        known = own if pick.below(4) == 3 else alive
        most = 1 + pick.below(2)
        wanted = [
            self._wanted(pick.of(known).job, most, pick) for _ in range(pick.of([1, 1, 2, 3]))
        ]
        return self._ask(tenant_id, tuple(wanted))

    def _wanted(self, job: Job, most: int, pick: Pick) -> Wanted:
        delay, run_at = pick.of(
            [(None, None), (None, None), (9.0, None), (None, self.now - timedelta(seconds=4))]
        )
        return Wanted(
            job.job_id,
            priority=pick.of([None, None, *PRIORITIES]),
            delay_seconds=delay,
            run_at=run_at,
            unique_key=pick.of([None, None, "one", "two"]),
            concurrency=pick.of([None, _key(job, "shared", most)]),
        )

    def _ask(self, tenant_id: TenantId, contents: tuple[Wanted, ...] | Instants) -> Ask:
        request = Request(tenant_id, "test", f"request-{next(self.numbers)}", self.now)
        step = Ask(request, contents, self.now)
        self.asks.append(step)
        return step

    def backfill(self, model: StoreModel, pick: Pick) -> Ask | None:
        """Instants around where the job is: some fired, some missed, some to come."""
        settled = [one for one in _alive_jobs(model) if one.last_instant is not None]
        record = pick.of(settled) if settled and pick.below(8) else self._job(model, pick)
        if record is None:
            return None
        step = timedelta(seconds=record.job.schedule.interval_seconds or 1)
        middle = record.last_instant or record.counted_from + step
        around = [middle + step * place for place in (0, -1, -2, -4, 1, 2)]
        chosen = pick.some([one for one in around if one > record.counted_from], 3)
        asked = Instants(record.job.job_id, tuple(chosen), pick.below(4) == 3)
        return self._ask(record.job.tenant_id, asked)

    def release(self, pick: Pick) -> Release:
        return Release(pick.of([None, None, self.now - timedelta(seconds=10)]), self.now)

    def claim(self, model: StoreModel, pick: Pick) -> ClaimNext | None:
        """By somebody who can have one of the rows that wait, mostly."""
        workers, waiting = alive_workers(model), [row for row in model.live.values() if row.waits]
        queue, _ = pick.of(sorted(model.lanes))
        if waiting and pick.below(8):
            row = pick.of(waiting)
            queue = row.queue
            workers = [one for one in workers if _serves(model, one, row)] or workers
        if not workers:
            return None
        lanes = [lane for (of, _), lane in sorted(model.lanes.items()) if of == queue]
        lanes = lanes if pick.below(2) else [pick.of(lanes)]
        request = ClaimRequest(pick.of(workers), queue, lanes, 1 + pick.below(4), pick.of([*Look]))
        return ClaimNext(request, self.now)

    def finish(
        self, model: StoreModel, pick: Pick, events: Sequence[ExecutionEvent] = EVENTS
    ) -> Finish | None:
        """What a worker holds, and now and then what it held before."""
        if not model.claims:
            return None
        held = {(row.worker_id, row.execution_id, row.fence) for row in model.live.values()}
        claims = model.claims[-40:]
        holding = [one for one in claims if one in held]
        worker_id = pick.of(holding or claims)[0]
        ours = [one for one in holding if one[0] == worker_id]
        past = [one for one in claims if one[0] == worker_id and one not in held]
        chosen = pick.some(ours, 3)
        if past and (not chosen or pick.below(3) == 2):
            chosen.append(pick.of(past))
        once = {execution_id: fence for _, execution_id, fence in reversed(chosen)}
        outcomes = [self._outcome(id_, fence, events, pick) for id_, fence in once.items()]
        return Finish(worker_id, tuple(outcomes), self.now)

    def _outcome(
        self,
        execution_id: ExecutionId,
        fence: int,
        events: Sequence[ExecutionEvent],
        pick: Pick,
    ) -> Outcome:
        event = pick.of(events)
        return Outcome(
            execution_id,
            fence,
            event,
            delay_seconds=pick.of([0.0, 0.0, 3.0, 20.0]),
            started_at=pick.of([None, self.now]),
            dead_letter=DeadLetterReason.EXHAUSTED if event in _FINAL_FAILURES else None,
        )

    def cancel(self, model: StoreModel, pick: Pick) -> Cancel | None:
        """Of live ones mostly, of their tenant mostly."""
        known = sorted(model.live) or [record[0] for record in model.history[-3:]]
        if not known:
            return None
        chosen = pick.some(known, 2)
        if model.history and pick.below(4) == 3:
            chosen = [*dict.fromkeys([*chosen, model.history[-1][0]])]
        row = model.live.get(chosen[0])
        tenants = [*model.weights]
        tenant = row.tenant_id if row and pick.below(8) else pick.of(tenants)
        return Cancel(tenant, tuple(chosen), self.now)

    def beat(self, model: StoreModel, pick: Pick, worker_id: WorkerId | None = None) -> BeatOnce:
        worker_id = worker_id or pick.of(sorted(model.workers))
        return BeatOnce(worker_id, self._begun(model, worker_id, pick), self.now)

    def leave(self, model: StoreModel, pick: Pick, how: Leave | None = None) -> LeaveWork | None:
        workers = alive_workers(model)
        if not workers:
            return None
        worker_id = pick.of(workers)
        begun = self._begun(model, worker_id, pick)
        return LeaveWork(worker_id, how or pick.of([*Leave]), begun)

    def _begun(self, model: StoreModel, worker_id: WorkerId, pick: Pick) -> frozenset[ExecutionId]:
        held = sorted(row.execution_id for row in model.live.values() if row.worker_id == worker_id)
        return frozenset(one for one in held if pick.below(4))

    def put_limit(self, model: StoreModel, pick: Pick) -> PutLimit | None:
        record = self._job(model, pick)
        if record is None:
            return None
        job, most = record.job, pick.below(3)
        own = job_limit(job.tenant_id, job.job_id, job.name, most)
        limit = pick.of([own, _key(job, "shared", most)])
        return PutLimit(limit, lifted=pick.below(6) == 5)

    def pause_queue(self, model: StoreModel, pick: Pick) -> PauseQueue:
        queue = pick.of(sorted({queue for queue, _ in model.lanes}))
        return PauseQueue(queue, queue not in model.paused_queues, self.now)


def _alive_jobs(model: StoreModel) -> list[JobRecord]:
    return [one for one in model.jobs.values() if one.status is not JobState.DELETED]


def alive_workers(model: StoreModel) -> list[WorkerId]:
    return [one for one in sorted(model.workers) if _status(model, one) is not WorkerState.DEAD]


def _status(model: StoreModel, worker_id: WorkerId) -> WorkerState:
    return model.workers[worker_id].status


def _serves(model: StoreModel, worker_id: WorkerId, row: Row) -> bool:
    worker = model.workers[worker_id]
    return worker.status is WorkerState.ACTIVE and worker.tenant_id in (None, row.tenant_id)


def _schedule(pick: Pick) -> Schedule:
    return Schedule(
        ScheduleType.INTERVAL,
        interval_seconds=pick.of([5, 10, 30]),
        overlap_policy=pick.of([*OverlapPolicy, OverlapPolicy.CANCEL_PREVIOUS]),
        misfire_policy=pick.of([*MisfirePolicy]),
        misfire_max_runs=3,
        max_runs=pick.of([None, None, None, None, 3]),
        jitter_seconds=pick.of([0, 0, 2]),
    )


def _other_policy(schedule: Schedule) -> Schedule:
    """The same instants under another version."""
    allows = schedule.overlap_policy is OverlapPolicy.ALLOW
    return replace(schedule, overlap_policy=OverlapPolicy.SKIP if allows else OverlapPolicy.ALLOW)


def _concurrency(pick: Pick) -> ConcurrencyLimit:
    """None, one of the job's own, or one that jobs of the tenant share."""
    none, own, shared = (
        ConcurrencyLimit(),
        ConcurrencyLimit(limit=1 + pick.below(2)),
        ConcurrencyLimit("shared", 2),
    )
    return pick.of([none, none, own, own, shared])


def _key(job: Job, key: str, most: int) -> Limit:
    return key_limit(job.tenant_id, key, most)
