"""What the store should do, in dictionaries: slow, single-threaded and small enough to believe.

Each method is one operation at a told time. Ranks are not modelled, only who has one; which of the
ranked rows a claim takes is the store's to say, and checked to be allowed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from foliot.core.ids import ExecutionId, JobId, WorkerId
from foliot.core.model import Job, OverlapPolicy
from foliot.core.poison import Death, QueueAgain, after_death
from foliot.core.retry import GiveUp
from foliot.core.states import EXECUTION, TERMINAL, ExecutionEvent, ExecutionState, advance
from foliot.store.finishing import Outcome
from foliot.store.firing import JobFire

S, E = ExecutionState, ExecutionEvent
# Id, fence, attempt, state and whether the execution ended with it.
Record = tuple[ExecutionId, int, int, str, bool]
_UNCOUNTED = {E.SNOOZE, E.HAND_BACK, E.HOLD}
_DATED = {S.PENDING, S.QUEUED, S.RETRYING}


@dataclass(slots=True)
class Row:
    """A live execution."""

    execution_id: ExecutionId
    job_id: JobId
    status: ExecutionState
    scheduled_time: datetime
    available_at: datetime
    start_by: datetime | None
    limited: bool
    scheduled: bool
    priority: int
    hold: str | None = None
    ranked: bool = False
    fence: int = 0
    attempt_number: int = 0
    worker_id: WorkerId | None = None
    cancel_requested: bool = False
    run_alone: bool = False
    crash_count: int = 0

    @property
    def columns(self) -> tuple[object, ...]:
        """As the tables have them."""
        return (
            self.status.value,
            self.hold,
            self.ranked,
            self.fence,
            self.attempt_number,
            self.worker_id,
            self.cancel_requested,
            self.available_at,
            self.start_by,
            self.run_alone,
            self.crash_count,
            self.scheduled_time,
        )

    def let_go(self) -> None:
        """Its time has come: it may be claimed, or waits for a slot."""
        self.status, self.hold = (S.WAITING, "LIMIT") if self.limited else (S.QUEUED, None)
        self.ranked = not self.limited


@dataclass(slots=True)
class StoreModel:
    jobs: dict[JobId, Job] = field(default_factory=dict)
    live: dict[ExecutionId, Row] = field(default_factory=dict)
    history: list[Record] = field(default_factory=list)
    dead: dict[ExecutionId, tuple[str, int]] = field(default_factory=dict)
    skipped: Counter[tuple[JobId, str]] = field(default_factory=Counter)
    started: dict[WorkerId, set[ExecutionId]] = field(default_factory=dict)

    def fire(self, fire: JobFire, now: datetime) -> None:
        job = self.jobs[fire.job_id]
        policy = job.schedule.overlap_policy
        for skip in fire.skips:
            self.skipped[job.job_id, skip.reason.value] += skip.count
        for place, one in enumerate(fire.fires):
            before = [row for row in self.live.values() if _is_of(row, job.job_id)]
            if policy is OverlapPolicy.CANCEL_PREVIOUS and place + 1 < len(fire.fires):
                held = None
            else:
                held = _is_held(policy, before)
            if held is None:
                self.skipped[job.job_id, "OVERLAP"] += 1
                continue
            row = self._new(job, one.execution_id, one.instant, one.available_at, scheduled=True)
            row.start_by = _after(one.available_at, job)
            if held:
                row.status, row.hold = S.WAITING, "OVERLAP"
                if policy is OverlapPolicy.CANCEL_PREVIOUS:
                    for previous in before:
                        self.cancel(previous.execution_id)
            elif one.available_at <= now:
                row.let_go()

    def skip_all(self, fire: JobFire) -> None:
        """Of a paused job: nothing runs."""
        for skip in fire.skips:
            self.skipped[fire.job_id, skip.reason.value] += skip.count

    def enqueue(
        self, job: Job, execution_id: ExecutionId, now: datetime, delay_seconds: float
    ) -> None:
        due = now + timedelta(seconds=delay_seconds)
        row = self._new(job, execution_id, due, due, scheduled=False)
        row.start_by = _after(due, job)
        if due <= now:
            row.let_go()

    def release(self, now: datetime) -> None:
        for row in self.live.values():
            waits = row.status in _DATED or row.hold == "BREAKER"
            if waits and not row.ranked and row.available_at <= now:
                row.let_go()

    def release_overlaps(self, now: datetime) -> None:
        for job_id in {row.job_id for row in self.live.values() if row.hold == "OVERLAP"}:
            rows = [row for row in self.live.values() if _is_of(row, job_id)]
            oldest = min(
                (row for row in rows if row.hold == "OVERLAP"),
                key=lambda row: (row.scheduled_time, row.execution_id),
            )
            if all(row.hold == "OVERLAP" for row in rows) and oldest.available_at <= now:
                oldest.let_go()

    def admit(self) -> set[ExecutionId]:
        """Who gets a slot."""
        admitted = set()
        held = [row for row in self.live.values() if row.hold == "LIMIT"]
        for row in sorted(
            held, key=lambda row: (row.priority, row.scheduled_time, str(row.execution_id))
        ):
            limit = self.jobs[row.job_id].concurrency.limit
            alike = [one for one in self.live.values() if one.job_id == row.job_id and one.limited]
            if limit is None or sum(one.ranked for one in alike) < limit:
                row.status, row.hold, row.ranked = S.QUEUED, None, True
                admitted.add(row.execution_id)
        return admitted

    def claimable(self, now: datetime) -> set[ExecutionId]:
        return {
            row.execution_id
            for row in self.live.values()
            if row.status is S.QUEUED
            and row.ranked
            and (row.start_by is None or row.start_by > now)
        }

    def claim(self, worker_id: WorkerId, execution_id: ExecutionId) -> None:
        row = self.live[execution_id]
        row.status = advance(EXECUTION, row.status, E.CLAIM)
        row.worker_id, row.fence, row.attempt_number = (
            worker_id,
            row.fence + 1,
            row.attempt_number + 1,
        )

    def finish(self, worker_id: WorkerId, outcome: Outcome, now: datetime) -> ExecutionState | None:
        """The state it leads to; None if another claim holds it, or it is over."""
        row = self.live.get(outcome.execution_id)
        if row is None or (row.worker_id, row.fence) != (worker_id, outcome.fence):
            return None
        event = E.CANCEL if row.cancel_requested else outcome.event
        state = advance(EXECUTION, row.status, event)
        if state in TERMINAL:
            self._end(row, state, outcome.dead_letter if state is not S.CANCELLED else None)
            return state
        if event in (E.RETRY, E.LOSE):
            self._record(row, S.FAILED, final=False)
        row.attempt_number -= event in _UNCOUNTED
        row.status, row.worker_id, row.ranked = state, None, False
        row.hold = "BREAKER" if state is S.WAITING else None
        row.available_at = now + timedelta(seconds=outcome.delay_seconds)
        row.start_by = row.start_by if outcome.started_at is None else None
        return state

    def cancel(self, execution_id: ExecutionId) -> str:
        row = self.live.get(execution_id)
        if row is None:
            return "NOT_LIVE"
        if row.worker_id is None:
            self._end(row, S.CANCELLED)
            return "CANCELLED"
        row.cancel_requested = True
        return "ASKED"

    def expire(self, now: datetime) -> set[ExecutionId]:
        late = [
            row
            for row in self.live.values()
            if row.worker_id is None and row.start_by is not None and row.start_by <= now
        ]
        for row in late:
            self._end(row, S.FAILED, "EXPIRED")
        return {row.execution_id for row in late}

    def rescue(self, buried: Iterable[WorkerId], now: datetime) -> None:
        """What a dead worker had not begun goes back as it was; the rest runs alone, or ends."""
        held = [(row.worker_id, row) for row in self.live.values() if row.worker_id is not None]
        for worker_id, row in held:
            if worker_id not in set(buried):
                continue
            death = Death.NOT_STARTED
            if row.execution_id in self.started[worker_id]:
                death = Death.ALONE if row.run_alone else Death.SHARED
            policy = self.jobs[row.job_id].retry_policy
            verdict = after_death(policy, row.attempt_number, row.crash_count, death)
            lost = Outcome(row.execution_id, row.fence, E.LOSE)
            if isinstance(verdict, GiveUp):
                lost = replace(lost, event=E.FAIL, dead_letter=verdict.reason)
            elif isinstance(verdict, QueueAgain):
                lost = replace(lost, event=E.HAND_BACK)
            elif not row.cancel_requested:
                row.run_alone, row.crash_count, row.start_by = True, verdict.crash_count, None
            self.finish(worker_id, lost, now)

    def delete(self, job_id: JobId) -> None:
        self.jobs[job_id] = replace(
            self.jobs[job_id], concurrency=replace(self.jobs[job_id].concurrency, limit=None)
        )
        for row in [row for row in self.live.values() if row.job_id == job_id]:
            if row.worker_id is None:
                self._end(row, S.CANCELLED)

    def _new(
        self,
        job: Job,
        execution_id: ExecutionId,
        instant: datetime,
        available_at: datetime,
        *,
        scheduled: bool,
    ) -> Row:
        if execution_id in self.live or any(execution_id == ended for ended, *_ in self.history):
            raise AssertionError(f"{execution_id} was there before")
        row = Row(
            execution_id,
            job.job_id,
            S.PENDING,
            instant,
            available_at,
            None,
            job.concurrency.limit is not None,
            scheduled,
            job.priority,
        )
        self.live[execution_id] = row
        return row

    def _record(self, row: Row, state: ExecutionState, *, final: bool) -> None:
        self.history.append((row.execution_id, row.fence, row.attempt_number, state.value, final))

    def _end(self, row: Row, state: ExecutionState, dead_letter: str | None = None) -> None:
        self._record(row, state, final=True)
        if dead_letter is not None:
            self.dead[row.execution_id] = (str(dead_letter), row.attempt_number)
        del self.live[row.execution_id]


def _is_of(row: Row, job_id: JobId) -> bool:
    return row.job_id == job_id and row.scheduled


def _is_held(policy: OverlapPolicy, before: Sequence[Row]) -> bool | None:
    """Whether a new instant waits for those before it; None: it is skipped."""
    if policy is OverlapPolicy.ALLOW or not before:
        return False
    if policy is OverlapPolicy.SKIP:
        return None
    if policy is OverlapPolicy.QUEUE_ONE and any(row.hold == "OVERLAP" for row in before):
        return None
    return True


def _after(moment: datetime, job: Job) -> datetime | None:
    if job.start_deadline_seconds is None:
        return None
    return moment + timedelta(seconds=job.start_deadline_seconds)
