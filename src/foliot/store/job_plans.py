"""What a version of a job says about when it fires, and the columns that say it.

Nothing is planned by a schedule that cannot be kept. One that recurs begins at the edit that
brought it; one with a single instant keeps that instant, also if it is past, unless everything up
to there has been settled already. A delay counts from the edit that set it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.limits import LimitKey, job_limit, key_texts
from foliot.core.model import Job, Schedule, ScheduleType
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.check import validate
from foliot.core.schedule.occurrences import ScheduleFacts, next_occurrence
from foliot.core.states import JobState
from foliot.core.storable import check_storable
from foliot.store.job_rows import StoredJob, definition_of, limits_of
from foliot.store.staging import jittered

BYTES_MAX: Final = 1_048_576
_RECURRING: Final = frozenset({ScheduleType.CRON, ScheduleType.INTERVAL})
_NEVER_OVER: Final = frozenset({ScheduleType.MANUAL, ScheduleType.AFTER})


@dataclass(frozen=True, slots=True)
class Plan:
    """`alive`: it fires again, or waits for somebody to trigger it. Delays count from
    `counted_from`."""

    counted_from: datetime
    next_instant: datetime | None
    next_run_at: datetime | None
    alive: bool


def first_plan(job: Job, calendar: Calendar | None, now: datetime) -> Plan:
    """Of a new job: from its very first instant, also a past one."""
    facts = ScheduleFacts(job.job_id, now, calendar)
    validate(job.schedule, facts)
    return _plan(job.schedule, facts, after=None)


def next_plan(stored: StoredJob, job: Job, calendar: Calendar | None) -> Plan:
    """Of an edited schedule, once everything up to now is settled under the old one."""
    old, new = stored.job.schedule, job.schedule
    restarts = new.type is not old.type or new.delay_seconds != old.delay_seconds
    counted_from = stored.now if restarts else stored.counted_from
    after = stored.last_instant
    if new.type in _RECURRING:
        after = max(stored.now, after or stored.now)
    facts = ScheduleFacts(job.job_id, counted_from, calendar, stored.fired_count)
    validate(new, facts)
    return _plan(new, facts, after)


def calendar_plan(stored: StoredJob, calendar: Calendar) -> Plan:
    """Of a schedule that stays while its calendar changes, once everything up to now is settled."""
    facts = ScheduleFacts(stored.job.job_id, stored.counted_from, calendar, stored.fired_count)
    after = max(stored.now, stored.last_instant or stored.now)
    return _plan(stored.job.schedule, facts, after)


def same_plan(stored: StoredJob) -> Plan:
    """Of an edit that leaves the schedule as it is."""
    alive = stored.job.status is not JobState.COMPLETED
    return Plan(stored.counted_from, stored.next_instant, stored.next_run_at, alive)


def is_over_without_instants(schedule: Schedule) -> bool:
    return schedule.type not in _NEVER_OVER


def columns(job: Job, plan: Plan, lane_id: int) -> tuple[object, ...]:
    """What a row and its version keep of a job, in the order of the statements."""
    definition = check_storable(definition_of(job, plan.counted_from), "job", BYTES_MAX)
    payload = None if job.payload is None else check_storable(job.payload, "payload", BYTES_MAX)
    return (
        plan.next_instant,
        plan.next_run_at,
        job.queue,
        lane_id,
        job.priority,
        job.schedule.overlap_policy.value,
        job.start_deadline_seconds,
        list(key_texts(limits_of(job))) or None,
        job.callback_url is not None,
        job.name,
        list(job.tags) or None,
        definition,
        payload,
    )


def own_limit(job: Job) -> LimitKey:
    return job_limit(job.tenant_id, job.job_id, job.name, 0).key


def _plan(schedule: Schedule, facts: ScheduleFacts, after: datetime | None) -> Plan:
    found = next_occurrence(schedule, facts, after)
    if found is None:
        alive = not is_over_without_instants(schedule)
        return Plan(facts.created_at, None, None, alive)
    run_at = jittered(schedule, facts, found.instant)
    return Plan(facts.created_at, found.instant, run_at, alive=True)
