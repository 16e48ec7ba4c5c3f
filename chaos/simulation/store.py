"""The database of the simulation: the model of the store, and what that model does not have.

Leases, schedulers and jobs that follow others are done again here, as the SQL does them. Of every
instant it is kept what became of it, and of every schedule from when until when it was in force,
so that the ledger can be checked at the end.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from chaos.simulation.engine import BEGAN, Node, Violation
from foliot.core.errors import FoliotError
from foliot.core.ids import ExecutionId, JobId, SchedulerId, TenantId
from foliot.core.lease import Lease
from foliot.core.model import AfterOn, Job, Schedule, ScheduleType, Trigger
from foliot.core.schedule.after import Completion
from foliot.core.schedule.timeline import Skip
from foliot.core.states import EXECUTION, TERMINAL, ExecutionState, JobState
from foliot.store.definitions import as_json
from foliot.store.job_rows import definition_of
from foliot.store.session import encode_json
from foliot.testing.model import jobs
from foliot.testing.model.state import JobRecord, Row, StoreModel

LEGAL = frozenset((state, after) for (state, _), after in EXECUTION.items())


@dataclass(slots=True)
class Stretch:
    """A schedule in force: from after `since` up to and with `until`."""

    schedule: Schedule
    since: datetime | None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """`count` instants from `first` to `last`; `fired` or skipped."""

    first: datetime
    last: datetime
    count: int
    fired: bool


@dataclass(frozen=True, slots=True)
class Told:
    """The end of a parent that a child has not heard of."""

    child_id: JobId
    completion: Completion


class SimulatedStore(StoreModel):
    """`now` is the time of the commit under way. `bearers` are the nodes by the ids that they
    have had."""

    def __init__(
        self,
        lanes: Mapping[tuple[str, str], int],
        weights: Mapping[TenantId, float],
        shards: Iterable[int],
    ) -> None:
        super().__init__(lanes, weights)
        self.now = BEGAN
        self.leases = {shard: Lease(shard, None, 0, None) for shard in sorted(shards)}
        self.schedulers: dict[SchedulerId, datetime] = {}
        self.bearers: dict[UUID, Node] = {}
        self.stretches: defaultdict[JobId, list[Stretch]] = defaultdict(list)
        self.settled: defaultdict[JobId, list[Settled]] = defaultdict(list)
        self.news: list[tuple[JobId, Settled]] = []
        self.tried: Counter[ExecutionId] = Counter()
        self.ended: dict[ExecutionId, ExecutionState] = {}
        self.cancel_asked_at: dict[ExecutionId, datetime] = {}
        self.completions: list[Told] = []
        self.told: defaultdict[JobId, dict[JobId, Completion]] = defaultdict(dict)
        self.causes: set[tuple[JobId, ExecutionId]] = set()
        self.locked: dict[JobId, tuple[object, datetime]] = {}
        self.counts: Counter[str] = Counter()  # what was brought about
        self.changed_at: dict[UUID, datetime] = {}  # an execution, or any of a job
        self.children: defaultdict[JobId, list[JobRecord]] = defaultdict(list)
        self._definitions: dict[tuple[JobId, int], str] = {}

    def is_known(self, execution_ids: Iterable[ExecutionId]) -> ExecutionId | None:
        return next((one for one in execution_ids if one in self.live or one in self.ended), None)

    def add(
        self,
        record: JobRecord,
        execution_id: ExecutionId,
        trigger: Trigger,
        instant: datetime,
        available_at: datetime,
    ) -> Row:
        if trigger is Trigger.SCHEDULE:
            self.news.append((record.job.job_id, Settled(instant, instant, 1, fired=True)))
        return super().add(record, execution_id, trigger, instant, available_at)

    def skip(self, job_id: JobId, skip: Skip) -> None:
        super().skip(job_id, skip)
        self.news.append((job_id, Settled(skip.from_, skip.to, skip.count, fired=False)))

    def keep_attempt(self, row: Row, state: ExecutionState, *, final: bool) -> None:
        super().keep_attempt(row, state, final=final)
        if not final:
            self.tried[row.execution_id] += 1

    def end(self, row: Row, state: ExecutionState, dead_letter: str | None = None) -> None:
        if (row.status, state) not in LEGAL or state not in TERMINAL:
            raise Violation(f"{row.execution_id} went from {row.status} to {state}")
        expected = self.tried[row.execution_id] + (row.worker_id is not None)
        if row.attempt_number != expected:
            raise Violation(
                f"{row.execution_id} ended after {row.attempt_number} attempts and had {expected}"
            )
        super().end(row, state, dead_letter)
        self.ended[row.execution_id] = state
        for child in self.children[row.job_id]:
            after = child.job.schedule.after
            succeeded = state is ExecutionState.SUCCEEDED
            if after is not None and (succeeded or after.on is AfterOn.FINISHED):
                end = Completion(row.job_id, row.execution_id, state, self.now)
                self.completions.append(Told(child.job.job_id, end))

    def create(self, job: Job) -> None:
        """Jobs without instants of their own are not over for that: the model has none of them."""
        jobs.create(self, job, self.now)
        record = self.jobs[job.job_id]
        schedule = job.schedule
        if schedule.type in (ScheduleType.MANUAL, ScheduleType.AFTER):
            record.status = JobState.ACTIVE
        for parent in schedule.after.jobs if schedule.after else ():
            self.children[parent].append(record)
        self.stretches[job.job_id].append(Stretch(schedule, None))

    def update(self, job: Job) -> None:
        with self.whole_or_not_at_all():
            jobs.update(self, job, self.now)
        record, stretches = self.jobs[job.job_id], self.stretches[job.job_id]
        if job.schedule != stretches[-1].schedule:
            since = max(self.now, record.last_instant or self.now)
            stretches[-1].until = since
            stretches.append(Stretch(job.schedule, since))

    @contextmanager
    def whole_or_not_at_all(self) -> Iterator[None]:
        """A change that is refused half-way is undone."""
        before, news, completions = self.copy(), [*self.news], [*self.completions]
        ended, tried = dict(self.ended), Counter(self.tried)
        try:
            yield
        except FoliotError:
            self.jobs, self.live, self.history = before.jobs, before.live, before.history
            self.dead, self.skipped, self.limits = before.dead, before.skipped, before.limits
            self.deliveries, self.clocks, self.claims = (
                before.deliveries,
                before.clocks,
                before.claims,
            )
            self.news, self.completions, self.ended, self.tried = news, completions, ended, tried
            raise

    def definition(self, job_id: JobId) -> str:
        record = self.jobs[job_id]
        key = (job_id, record.version)
        if key not in self._definitions:
            written = definition_of(record.job, record.counted_from)
            self._definitions[key] = encode_json(written)
        return self._definitions[key]


@lru_cache(maxsize=4096)
def schedule_text(schedule: Schedule) -> str:
    return encode_json(as_json(schedule))
