"""What the model of the store remembers: the rows of every table, and nothing else.

The rules live beside it: `jobs`, `requests`, `passes` and `work` change a `StoreModel` the way the
operations of the same trade change the tables, one after another and at a told time.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import isclose

from foliot.core.ids import ExecutionId, JobId, TenantId, WorkerId
from foliot.core.model import HandlerTarget, Job, RetryPolicy, Trigger
from foliot.core.schedule.occurrences import ScheduleFacts
from foliot.core.schedule.timeline import Skip
from foliot.core.states import ExecutionState, JobState, WorkerState
from foliot.store.staging import DueJob, jittered

S = ExecutionState
# Id, fence, attempt, state, whether the execution ended with it, and who made the attempt.
Record = tuple[ExecutionId, int, int, str, bool, WorkerId | None]

ROW_COLUMNS = (
    "job_id",
    "tenant_id",
    "job_version",
    "trigger",
    "queue",
    "lane_id",
    "priority",
    "scheduled_time",
    "available_at",
    "start_by",
    "limit_keys",
    "notify",
    "unique_key",
    "status",
    "hold",
    "fence",
    "attempt_number",
    "worker_id",
    "claimed_at",
    "cancel_requested",
    "run_alone",
    "crash_count",
)

JOB_COLUMNS = (
    "status",
    "version",
    "schedule_version",
    "next_instant",
    "next_run_at",
    "last_instant",
    "fired_count",
    "lane_id",
    "limit_keys",
)


class Disagreement(AssertionError):
    """The store did what the model says it does not do."""


def same(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise Disagreement(f"{what}: {found!r}, but by the model {expected!r}")


def within(found: Iterable[object], allowed: Iterable[object], what: str) -> None:
    if beyond := set(found) - set(allowed):
        raise Disagreement(f"{what}: {beyond!r} must not be among them")


def is_close(found: float | None, expected: float | None) -> bool:
    """Ranks are sums, and two ways to add may differ in the last bit."""
    if found is None or expected is None:
        return found is expected
    return isclose(found, expected, rel_tol=1e-9)


@dataclass(slots=True)
class Row:
    """A live execution."""

    execution_id: ExecutionId
    job_id: JobId
    tenant_id: TenantId
    job_version: int
    trigger: Trigger
    queue: str
    lane_id: int
    priority: int
    scheduled_time: datetime
    available_at: datetime
    start_by: datetime | None
    limit_keys: tuple[str, ...] | None
    notify: bool
    retry_policy: RetryPolicy
    unique_key: str | None = None
    status: ExecutionState = S.PENDING
    hold: str | None = None
    rank: float | None = None
    fence: int = 0
    attempt_number: int = 0
    worker_id: WorkerId | None = None
    claimed_at: datetime | None = None
    cancel_requested: bool = False
    run_alone: bool = False
    crash_count: int = 0

    @property
    def columns(self) -> dict[str, object]:
        """As the table has them, but for the rank, which is compared as a number is."""
        return {name: getattr(self, name) for name in ROW_COLUMNS}

    @property
    def is_scheduled(self) -> bool:
        return self.trigger is Trigger.SCHEDULE

    @property
    def waits(self) -> bool:
        """It may be claimed at any moment."""
        return self.rank is not None and self.worker_id is None


@dataclass(slots=True)
class JobRecord:
    """A job with the version in force and how far it has come."""

    job: Job
    lane_id: int
    counted_from: datetime
    status: JobState = JobState.ACTIVE
    version: int = 1
    schedule_version: int = 1
    next_instant: datetime | None = None
    last_instant: datetime | None = None
    fired_count: int = 0
    limit_keys: tuple[str, ...] | None = None

    @property
    def facts(self) -> ScheduleFacts:
        return ScheduleFacts(self.job.job_id, self.counted_from, None, self.fired_count)

    @property
    def next_run_at(self) -> datetime | None:
        if self.next_instant is None:
            return None
        return jittered(self.job.schedule, self.facts, self.next_instant)

    @property
    def due(self) -> DueJob | None:
        if self.next_instant is None or self.next_run_at is None:
            return None
        return DueJob(
            self.job.job_id,
            self.job.tenant_id,
            self.job.queue,
            self.next_instant,
            self.next_run_at,
            self.schedule_version,
            self.job.schedule,
            self.facts,
        )

    @property
    def columns(self) -> dict[str, object]:
        """As the table has them."""
        found = {name: getattr(self, name) for name in JOB_COLUMNS}
        return found | {"queue": self.job.queue, "priority": self.job.priority}


@dataclass(slots=True)
class WorkerRecord:
    last_beat: datetime
    tenant_id: TenantId | None = None
    status: WorkerState = WorkerState.ACTIVE
    started: frozenset[ExecutionId] = frozenset()


@dataclass(slots=True)
class StoreModel:
    """`lanes` are by queue and handler, `weights` by tenant; `clocks` are the virtual times of the
    lanes, each between two bounds until the tables have told it; `claims` is all that workers have
    ever been given. `unseen` is what another step makes at this very moment,
    `in_hand` what it has locked."""

    lanes: Mapping[tuple[str, str], int]
    weights: Mapping[TenantId, float]
    jobs: dict[JobId, JobRecord] = field(default_factory=dict)
    live: dict[ExecutionId, Row] = field(default_factory=dict)
    history: list[Record] = field(default_factory=list)
    dead: dict[ExecutionId, tuple[str, int]] = field(default_factory=dict)
    skipped: Counter[tuple[JobId, str]] = field(default_factory=Counter)
    deliveries: set[tuple[ExecutionId, int, str]] = field(default_factory=set)
    limits: dict[str, int] = field(default_factory=dict)
    clocks: dict[int, tuple[float, float]] = field(default_factory=dict)
    paused_queues: set[str] = field(default_factory=set)
    workers: dict[WorkerId, WorkerRecord] = field(default_factory=dict)
    requests: dict[str, tuple[object, list[tuple[ExecutionId, str]]]] = field(default_factory=dict)
    claims: list[tuple[WorkerId, ExecutionId, int]] = field(default_factory=list)
    unseen: frozenset[ExecutionId] = frozenset()
    in_hand: frozenset[ExecutionId] = frozenset()

    def copy(self) -> "StoreModel":
        return StoreModel(
            self.lanes,
            self.weights,
            {key: copy(record) for key, record in self.jobs.items()},
            {key: copy(row) for key, row in self.live.items()},
            [*self.history],
            dict(self.dead),
            Counter(self.skipped),
            set(self.deliveries),
            dict(self.limits),
            dict(self.clocks),
            set(self.paused_queues),
            {key: copy(worker) for key, worker in self.workers.items()},
            dict(self.requests),
            [*self.claims],
        )

    def lane_of(self, job: Job) -> int:
        if not isinstance(job.target, HandlerTarget):
            raise TypeError("jobs of the model have handlers")
        return self.lanes[job.queue, job.target.name]

    def virtual_time(self, queue: str) -> float:
        lanes = (lane for (of, _), lane in self.lanes.items() if of == queue)
        return max((self.clocks[lane][0] for lane in lanes if lane in self.clocks), default=0.0)

    def is_known(self, execution_ids: Iterable[ExecutionId]) -> ExecutionId | None:
        """The first that is live or has a history."""
        ended = {record[0] for record in self.history}
        return next((one for one in execution_ids if one in self.live or one in ended), None)

    def waiting(self) -> set[ExecutionId]:
        return {execution_id for execution_id, row in self.live.items() if row.waits}

    def of_job(self, job_id: JobId) -> list[Row]:
        """What the schedule itself has brought and is not over."""
        return [row for row in self.live.values() if row.job_id == job_id and row.is_scheduled]

    def add(
        self,
        record: JobRecord,
        execution_id: ExecutionId,
        trigger: Trigger,
        instant: datetime,
        available_at: datetime,
    ) -> Row:
        """A new row, parked."""
        if self.is_known([execution_id]):
            raise Disagreement(f"{execution_id} was there before")
        job = record.job
        row = Row(
            execution_id,
            job.job_id,
            job.tenant_id,
            record.version,
            trigger,
            job.queue,
            record.lane_id,
            job.priority,
            instant,
            available_at,
            start_by_of(job, available_at),
            record.limit_keys,
            job.callback_url is not None,
            job.retry_policy,
        )
        self.live[execution_id] = row
        return row

    def skip(self, job_id: JobId, skip: Skip) -> None:
        self.skipped[job_id, skip.reason.value] += skip.count

    def keep_attempt(self, row: Row, state: ExecutionState, *, final: bool) -> None:
        self.history.append(
            (
                row.execution_id,
                row.fence,
                row.attempt_number,
                state.value,
                final,
                row.worker_id,
            )
        )

    def end(self, row: Row, state: ExecutionState, dead_letter: str | None = None) -> None:
        self.keep_attempt(row, state, final=True)
        if dead_letter is not None:
            self.dead[row.execution_id] = (str(dead_letter), row.attempt_number)
        if row.notify:
            self.deliveries.add((row.execution_id, row.fence, state.value))
        del self.live[row.execution_id]


def start_by_of(job: Job, moment: datetime) -> datetime | None:
    if job.start_deadline_seconds is None:
        return None
    return moment + timedelta(seconds=job.start_deadline_seconds)
