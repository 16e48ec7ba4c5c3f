"""Why is it not running? What stands in the way of an execution, in the order in which it must go.

First its time, then what its job's overlap policy or a parent holds, then limits; then a scheduler
lets it go, and it stands in its queue: until that is not paused and has room, until a worker is
there that can run it and has a place, until those before it are gone. What can change at any moment
(a full queue, busy workers, the line) is told only of what stands there already; a full queue also
of what is under limits that have room, because it is let go as that queue has places. A paused one
and a missing worker are told at once, because nobody would be glad to learn of them later.
"""

from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

from foliot.core.explain_running import explain_running
from foliot.core.explanation import Code, Explanation, Facts, Hold, LimitUse, Reason
from foliot.core.ids import JobId
from foliot.core.limits import (
    Blocker,
    Limit,
    job_limit,
    job_rate,
    key_limit,
    queue_limit,
    tenant_limit,
    tenant_rate,
)
from foliot.core.model import Json, RateLimit
from foliot.core.reason_words import (
    at,
    error_words,
    executions,
    holder_details,
    holder_words,
    seconds_since,
    seconds_until,
    sentence,
    span,
)
from foliot.core.serving import find_lack, serving
from foliot.core.states import ExecutionState, JobState

# A scheduler looks several times a second, and is told.
RELEASE_SECONDS: Final = 2.0

Reasons = Iterator[Reason]


def explain(facts: Facts) -> Explanation:
    """Of an execution that is not over."""
    if facts.worker is not None:
        return explain_running(facts, facts.worker)
    reasons = tuple(_in_queue(facts) if facts.ready else _before_queue(facts))
    return Explanation(facts.execution_id, facts.status, _summary(facts, reasons), reasons)


def _before_queue(facts: Facts) -> Reasons:
    gates = tuple(reason for gate in _GATES for reason in gate(facts))
    lasting = (*_paused(facts), *_no_worker(facts))
    yield from gates
    # What a limit lets go is let go only if its queue has a place and somebody is there to run it.
    full = tuple(_queue_full(facts)) if facts.hold is Hold.LIMIT and not gates else ()
    yield from full
    held = gates or full or (lasting if facts.hold is Hold.LIMIT and facts.workers.live else ())
    if not held or not facts.schedulers.live:
        yield _not_released(facts)
    yield from lasting


def _in_queue(facts: Facts) -> Reasons:
    yield from _deleted(facts)
    before = (*_paused(facts), *_queue_full(facts), *_no_worker(facts), *_full(facts))
    yield from before
    if facts.ahead or not before:
        yield _in_line(facts)


def _deleted(facts: Facts) -> Reasons:
    if facts.job_status is JobState.DELETED:
        told = f"job {facts.job_name} was deleted: what waits of it is being cancelled"
        yield Reason(Code.JOB_DELETED, told, "nothing: a deleted job runs no more")


def _time(facts: Facts) -> Reasons:
    if facts.available_at <= facts.moment or facts.hold in {Hold.LIMIT, Hold.PARENT, Hold.EVENT}:
        return
    due, seconds = facts.available_at, seconds_until(facts.available_at, facts.moment)
    when = f"{at(due)}, in {span(seconds)}"
    details: dict[str, Json] = {"available_at": due, "in_seconds": seconds}
    if facts.hold is Hold.BREAKER:
        told = facts.hold_detail or "its target cannot be called now"
        way_out = "wait for the next try, which costs no attempt, or mend what is said there"
        yield Reason(Code.BREAKER, f"{told}; its turn comes at {when}", way_out, due, details)
    elif facts.status is ExecutionState.RETRYING:
        tries = f"attempt {facts.attempt_number} of {facts.max_attempts} failed"
        error = error_words(facts.error)
        told = f"{tries}{f' with {error}' if error else ''}; the next is due at {when}"
        more = {"attempt_number": facts.attempt_number, "max_attempts": facts.max_attempts}
        way_out = "wait, or cancel it and ask for a new one"
        yield Reason(Code.BACKOFF, told, way_out, due, details | more | {"error": facts.error})
    else:
        told = f"it is due at {when}"
        if facts.job_status is JobState.PAUSED:
            told += "; its job is paused, which fires nothing new and does not hold this one"
        way_out = "wait, or cancel it and ask for one without a delay"
        yield Reason(Code.NOT_DUE, told, way_out, due, details | {"job_status": facts.job_status})


def _chained(facts: Facts) -> Reasons:
    details = {"dag_run_id": facts.dag_run_id}
    if facts.hold is Hold.PARENT:
        told = f"it waits for what comes before it in dag run {facts.dag_run_id}"
        yield Reason(Code.PARENT, told, "wait, or look at the dag run", None, details)
    elif facts.hold is Hold.EVENT:
        told = f"it waits for a signal in dag run {facts.dag_run_id}"
        yield Reason(Code.EVENT, told, "send the signal", None, details)


def _overlap(facts: Facts) -> Reasons:
    if facts.hold is not Hold.OVERLAP or not (facts.under_way or facts.ahead):
        return
    told = f"of job {facts.job_name} only one may be under way"
    if facts.under_way:
        told += f": {holder_words(facts.under_way)}"
    if facts.ahead:
        goes = "goes" if facts.ahead == 1 else "go"
        told += f"; {executions(facts.ahead)} due earlier {goes} first"
    details = {"under_way": holder_details(facts.under_way), "ahead": facts.ahead}
    way_out = "wait for it to end, cancel it, or change schedule.overlap_policy of the job"
    yield Reason(Code.OVERLAP, told, way_out, None, details)


def _limits(facts: Facts) -> Reasons:
    """Of what waits for them, and of what would by now."""
    is_due = facts.hold is None and facts.available_at <= facts.moment
    if facts.hold is not Hold.LIMIT and not is_due:
        return
    full = [found for use in facts.limits for found in _full_limits(facts, use)]
    for blocker, use in sorted(full, key=lambda each: each[0].limit.key.scope):
        details: dict[str, Json] = {
            "scope": blocker.limit.key.scope.name,
            "key": use.key,
            "used": blocker.used,
            "limit": blocker.limit.at_most,
            "waiting": facts.alike,
        }
        told = str(blocker)
        if blocker.limit.period_seconds is not None:
            period = {"period_seconds": blocker.limit.period_seconds}
            yield Reason(Code.RATE, told, blocker.way_out, blocker.next_slot_at, details | period)
            continue
        if use.holders:
            told += f" ({holder_words(use.holders)})"
        holders = {"holders": holder_details(use.holders)}
        yield Reason(Code.CONCURRENCY, told, blocker.way_out, None, details | holders)


def _full_limits(facts: Facts, use: LimitUse) -> Iterator[tuple[Blocker, LimitUse]]:
    at_once, rate = _limits_of(facts, use)
    if at_once is not None and use.slots >= at_once.at_most:
        yield Blocker(at_once, use.slots), use
    if rate is not None and use.used >= rate.at_most:
        yield Blocker(rate, use.used, use.opens_at), use


def _limits_of(facts: Facts, use: LimitUse) -> tuple[Limit | None, Limit | None]:
    """A row's key as the limits that it stands for: how many at once, how many in a time."""
    kind, _, subject = use.key.partition(":")
    most, tenant, name = use.max_running, facts.tenant_id, facts.job_name
    rate = RateLimit(use.rate_count, use.rate_seconds)
    if kind == "tenant":
        at_once = None if most is None else tenant_limit(tenant, most)
        return at_once, tenant_rate(tenant, rate)
    if kind == "job":
        job = JobId(UUID(subject))
        at_once = None if most is None else job_limit(tenant, job, name, most)
        return at_once, job_rate(tenant, job, name, rate)
    key = subject.partition(":")[2]
    return None if most is None else key_limit(tenant, key, most), None


def _summary(facts: Facts, reasons: tuple[Reason, ...]) -> str:
    """The first of them, how many more there are, and how long it may wait."""
    first, *more = reasons
    told = f"it is not running: {first.message}"
    if more:
        told += f"; {len(more)} more {'reason' if len(more) == 1 else 'reasons'} below"
    if facts.start_by is not None:
        told += f"; it expires unless it is claimed before {at(facts.start_by)}"
    return sentence(told)


_GATES: Final[tuple[Callable[[Facts], Reasons], ...]] = (
    _deleted,
    _time,
    _chained,
    _overlap,
    _limits,
)


def _not_released(facts: Facts) -> Reason:
    """It must be let go by a scheduler."""
    live, seen = facts.schedulers.live, facts.schedulers.last_seen_at
    due = seconds_since(facts.available_at, facts.moment)
    details = {"due_seconds": due, "schedulers": live, "last_seen_at": seen}
    if not live:
        told = "no scheduler is running to let it go"
        if seen is not None:
            told += f": the last was seen {span(seconds_since(seen, facts.moment))} ago"
        way_out = "start one: foliot server --role scheduler"
        return Reason(Code.NOT_RELEASED, told, way_out, None, details)
    waited = f"it has been due for {span(due)}"
    if facts.hold in {Hold.LIMIT, Hold.OVERLAP}:
        waited = "nothing holds it any more"
    told = (
        f"{waited}, and none of {live} {'scheduler' if live == 1 else 'schedulers'} has let it go"
    )
    if due <= RELEASE_SECONDS or facts.hold is not None:
        return Reason(Code.NOT_RELEASED, told, "wait a moment", None, details)
    way_out = "wait; if it stays so, look at the logs and /readyz of the schedulers"
    return Reason(Code.NOT_RELEASED, told, way_out, None, details)


def _paused(facts: Facts) -> Reasons:
    queue = facts.queue
    if queue is None or queue.paused_at is None or facts.lane is None:
        return
    told = f"queue {facts.lane.queue} has been paused since {at(queue.paused_at)}"
    if queue.note:
        told += f": {queue.note}"
    details = {"queue": facts.lane.queue, "paused_at": queue.paused_at, "note": queue.note}
    way_out = f"POST /v1/queues/{facts.lane.queue}/resume"
    yield Reason(Code.QUEUE_PAUSED, told, way_out, None, details)


def _queue_full(facts: Facts) -> Reasons:
    queue = facts.queue
    if queue is None or queue.at_most is None or facts.lane is None or queue.used < queue.at_most:
        return
    blocker = Blocker(queue_limit(facts.lane.queue, queue.at_most), queue.used)
    told = str(blocker)
    if queue.holders:
        told += f" ({holder_words(queue.holders)})"
    details = {
        "scope": blocker.limit.key.scope.name,
        "key": facts.lane.queue,
        "used": queue.used,
        "limit": queue.at_most,
        "holders": holder_details(queue.holders),
    }
    yield Reason(Code.CONCURRENCY, told, blocker.way_out, None, details)


def _no_worker(facts: Facts) -> Reasons:
    lack = find_lack(facts.workers, facts.lane) if facts.lane is not None else None
    if lack is None or facts.lane is None:
        return
    details = {
        "missing": lack.missing,
        "workers": facts.workers.number,
        "silent": facts.workers.silent,
        "draining": facts.workers.draining,
        "queue": facts.lane.queue,
        "region": facts.lane.region,
        "requires": facts.lane.requires,
        "target_type": facts.lane.target_type,
        "handler": facts.lane.handler,
    }
    yield Reason(Code.NO_WORKER, lack.message, lack.way_out, None, details)


def _full(facts: Facts) -> Reasons:
    able = () if facts.lane is None else serving(facts.workers, facts.lane)
    capacity, in_use = sum(it.capacity for it in able), sum(it.in_use for it in able)
    if not able or in_use < capacity:
        return
    number = sum(it.number for it in able)
    over = "one worker" if number == 1 else f"{number} workers"
    told = f"{in_use} of {capacity} slots are in use, over {over} that could run it"
    details = {"in_use": in_use, "capacity": capacity, "workers": number}
    way_out = "wait for one to finish, start another worker, or raise --concurrency"
    yield Reason(Code.WORKERS_FULL, told, way_out, None, details)


def _in_line(facts: Facts) -> Reason:
    details = {"ahead": facts.ahead, "own_ahead": facts.own_ahead, "queued_at": facts.queued_at}
    if not facts.ahead:
        told = "it is the next in its lane, and a worker has room for it"
        return Reason(Code.IN_LINE, told, "wait a moment", None, details)
    verb = "is" if facts.ahead == 1 else "are"
    told = (
        f"{executions(facts.ahead)} {verb} ahead of it in its lane, {facts.own_ahead} of its tenant"
    )
    way_out = "wait, start more workers, or ask with a more urgent priority"
    return Reason(Code.IN_LINE, told, way_out, None, details)
