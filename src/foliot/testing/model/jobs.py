"""The model of jobs: what is due of them, what firing makes of it, and how they change.

Which instants fire, overlap or are missed is for the rules of the core to say; here is what follows
for the rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from foliot.core.errors import IllegalTransition, JobNotFound
from foliot.core.ids import JobId, TenantId
from foliot.core.limits import key_text, key_texts
from foliot.core.model import Job, SkipReason, Trigger
from foliot.core.schedule.occurrences import next_occurrence
from foliot.core.schedule.overlap import OverlapDecision, decide_batch
from foliot.core.schedule.timeline import Skip
from foliot.core.states import ExecutionState, JobState
from foliot.store.firing import Fire, JobFire
from foliot.store.job_plans import own_limit
from foliot.store.job_rows import limits_of
from foliot.store.staging import DueJob, settle_due
from foliot.testing.model.ranks import let_go
from foliot.testing.model.state import JobRecord, Row, StoreModel
from foliot.testing.model.work import cancel

D = OverlapDecision


def due(model: StoreModel, now: datetime) -> list[DueJob]:
    """Jobs whose next run has come, the longest due first."""
    found = [
        one
        for record in model.jobs.values()
        if record.status is JobState.ACTIVE and (one := record.due) and one.next_run_at <= now
    ]
    return sorted(found, key=lambda one: one.next_run_at)


def is_as_seen(model: StoreModel, fire: JobFire) -> bool:
    """Whether the job is still what whoever staged it saw."""
    record = model.jobs[fire.job_id]
    return (record.next_instant, record.schedule_version, record.status, record.job.queue) == (
        fire.expected,
        fire.schedule_version,
        JobState.ACTIVE,
        fire.queue,
    )


def fire(
    model: StoreModel, batch: Sequence[JobFire], now: datetime, *, park: bool = False
) -> list[OverlapDecision]:
    """What became of each instant that was to run. With `park`, what may start waits for the
    release, from now on."""
    decided = [(one, *_decide(model, one)) for one in batch]
    started = []
    for one, decisions, _ in decided:
        for each, decision in zip(one.fires, decisions, strict=True):
            row = _add(model, one, each, decision)
            if row is not None and park:
                row.available_at = max(row.available_at, now)
            if row is not None and row.hold is None and row.available_at <= now:
                started.append(row)
        _advance(model, one, sum(decision is not D.SKIP for decision in decisions))
    if park:
        started = [row for row in started if row.limit_keys is not None]
    let_go(model, sorted(started, key=lambda row: (row.scheduled_time, row.execution_id)))
    for _, decisions, before in decided:
        for row in before if D.CANCEL_PREVIOUS in decisions else ():
            cancel(model, row.execution_id)
    return [decision for _, decisions, _ in decided for decision in decisions]


def _decide(model: StoreModel, one: JobFire) -> tuple[tuple[OverlapDecision, ...], list[Row]]:
    before = model.of_job(one.job_id)
    waiting = sum(row.hold == "OVERLAP" for row in before)
    policy = model.jobs[one.job_id].job.schedule.overlap_policy
    running = len(before) - waiting
    return decide_batch(policy, running=running, waiting=waiting, fires=len(one.fires)), before


def _add(model: StoreModel, one: JobFire, each: Fire, decision: OverlapDecision) -> Row | None:
    if decision is D.SKIP:
        model.skip(one.job_id, Skip(each.instant, each.instant, 1, SkipReason.OVERLAP))
        return None
    record = model.jobs[one.job_id]
    row = model.add(record, each.execution_id, Trigger.SCHEDULE, each.instant, each.available_at)
    if decision is not D.START:
        row.status, row.hold = ExecutionState.WAITING, "OVERLAP"
    return row


def _advance(model: StoreModel, one: JobFire, fired: int) -> None:
    record = model.jobs[one.job_id]
    _skip(model, one)
    record.fired_count += fired
    record.next_instant = one.next_instant
    if one.next_instant is None or (one.runs_left is not None and fired >= one.runs_left):
        record.status, record.next_instant = JobState.COMPLETED, None


def _skip(model: StoreModel, one: JobFire) -> None:
    record = model.jobs[one.job_id]
    for skip in one.skips:
        model.skip(one.job_id, skip)
    record.last_instant = max(record.last_instant or one.settled, one.settled)


def settle(model: StoreModel, record: JobRecord, now: datetime, cause: SkipReason) -> None:
    """The instants up to now under the version in force; of a paused job nothing runs."""
    if record.status is JobState.PAUSED:
        if record.due is not None:
            schedule = replace(record.due.schedule, misfire_grace_seconds=-1.0)
            late = replace(record.due, schedule=schedule)
            if missed := settle_due(late, now, SkipReason.PAUSED):
                _skip(model, missed)
        return
    while record.due is not None and (one := settle_due(record.due, now, cause)):
        fire(model, [one], now, park=True)


def record_of(model: StoreModel, tenant_id: TenantId, job_id: JobId) -> JobRecord:
    record = model.jobs.get(job_id)
    deleted = record is None or record.status is JobState.DELETED
    if record is None or deleted or record.job.tenant_id != tenant_id:
        raise JobNotFound(job_id)
    return record


def create(model: StoreModel, job: Job, now: datetime) -> None:
    """Creating one that is there changes nothing; one that was deleted is not there."""
    if job.job_id in model.jobs:
        record_of(model, job.tenant_id, job.job_id)
        return
    record = JobRecord(job, model.lane_of(job), now)
    model.jobs[job.job_id] = record
    _plan(record, None)
    _put_limits(model, record)


def update(model: StoreModel, job: Job, now: datetime) -> None:
    record = record_of(model, job.tenant_id, job.job_id)
    rescheduled = job.schedule != record.job.schedule
    if rescheduled or record.status is JobState.ACTIVE:
        settle(model, record, now, SkipReason.MISFIRE)
    record.job, record.lane_id, record.version = job, model.lane_of(job), record.version + 1
    if rescheduled:
        record.schedule_version += 1
        _plan(record, max(now, record.last_instant or now))
    model.limits.pop(key_text(own_limit(job)), None)
    _put_limits(model, record)


def pause(model: StoreModel, tenant_id: TenantId, job_id: JobId, now: datetime) -> None:
    record = record_of(model, tenant_id, job_id)
    if record.status is JobState.PAUSED:
        return
    settle(model, record, now, SkipReason.MISFIRE)
    if record.status is not JobState.ACTIVE:
        raise IllegalTransition(state=record.status, event="PAUSE", allowed=())
    record.status, record.version = JobState.PAUSED, record.version + 1


def resume(model: StoreModel, tenant_id: TenantId, job_id: JobId, now: datetime) -> None:
    record = record_of(model, tenant_id, job_id)
    if record.status is JobState.ACTIVE:
        return
    if record.status is not JobState.PAUSED:
        raise IllegalTransition(state=record.status, event="RESUME", allowed=())
    over = record.next_instant is None
    record.status = JobState.COMPLETED if over else JobState.ACTIVE
    record.version += 1
    settle(model, record, now, SkipReason.PAUSED)


def delete(model: StoreModel, tenant_id: TenantId, job_id: JobId, now: datetime) -> None:
    """What waits of it is over; what runs may finish."""
    record = record_of(model, tenant_id, job_id)
    settle(model, record, now, SkipReason.MISFIRE)
    record.status, record.version, record.next_instant = JobState.DELETED, record.version + 1, None
    model.limits.pop(key_text(own_limit(record.job)), None)
    for row in [row for row in model.live.values() if row.job_id == job_id]:
        if row.worker_id is None:
            cancel(model, row.execution_id)


def _plan(record: JobRecord, after: datetime | None) -> None:
    found = next_occurrence(record.job.schedule, record.facts, after)
    record.next_instant = found.instant if found else None
    if record.status is not JobState.PAUSED:
        record.status = JobState.ACTIVE if found else JobState.COMPLETED


def _put_limits(model: StoreModel, record: JobRecord) -> None:
    limits = limits_of(record.job)
    record.limit_keys = key_texts(limits) or None
    model.limits |= {key_text(limit.key): limit.at_most for limit in limits}
