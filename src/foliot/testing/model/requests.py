"""The model of executions that somebody asks for: each request once, an instant once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.core.errors import IdempotencyKeyReused
from foliot.core.ids import (
    ExecutionId,
    JobId,
    microseconds,
    requested_execution,
    scheduled_execution,
)
from foliot.core.limits import key_text
from foliot.core.model import Trigger
from foliot.core.states import JobState
from foliot.store.enqueuing import Enqueued, Outcome, Request, Wanted
from foliot.testing.model.jobs import record_of
from foliot.testing.model.ranks import let_go
from foliot.testing.model.state import JobRecord, Row, StoreModel, start_by_of


@dataclass(frozen=True, slots=True)
class Instants:
    """A backfill."""

    job_id: JobId
    instants: tuple[datetime, ...]
    rerun: bool


Contents = tuple[Wanted, ...] | Instants


def ask(model: StoreModel, request: Request, contents: Contents, now: datetime) -> list[Enqueued]:
    """The same answers as the first time, if it was asked before."""
    known = model.requests.get(request.request_id)
    if known is not None:
        if known[0] != contents:
            raise IdempotencyKeyReused(request.request_id)
        return [Enqueued(id_, Outcome(outcome), replayed=True) for id_, outcome in known[1]]
    if isinstance(contents, Instants):
        answers = _backfill(model, request, contents, now)
    else:
        answers = _enqueue(model, request, contents, now)
    model.requests[request.request_id] = (contents, answers)
    return [Enqueued(id_, Outcome(outcome), replayed=False) for id_, outcome in answers]


def _enqueue(
    model: StoreModel, request: Request, wanted: Sequence[Wanted], now: datetime
) -> list[tuple[ExecutionId, str]]:
    for one in wanted:
        record_of(model, request.tenant_id, one.job_id)
    _set_limits(model, wanted)
    answers, made = [], []
    for number, one in enumerate(wanted):
        if (twin := _twin(model, one)) is not None:
            answers.append((twin, "EXISTS"))
            continue
        key = f"{request.route} {request.request_id} {number}"
        execution_id = requested_execution(
            request.tenant_id, one.job_id, one.trigger, key, request.seen_at
        )
        made.append(_add(model, one, execution_id, now))
        answers.append((execution_id, "CREATED"))
    let_go(model, [row for row in made if row.available_at <= now])
    return answers


def _twin(model: StoreModel, one: Wanted) -> ExecutionId | None:
    """The live execution of the job that has its unique key."""
    if one.unique_key is None:
        return None
    alike = (one.job_id, one.unique_key)
    rows = model.live.values()
    return next((row.execution_id for row in rows if (row.job_id, row.unique_key) == alike), None)


def _add(model: StoreModel, one: Wanted, execution_id: ExecutionId, now: datetime) -> Row:
    record = model.jobs[one.job_id]
    at = one.run_at or now + timedelta(seconds=one.delay_seconds or 0)
    row = model.add(record, execution_id, one.trigger, at, at)
    row.start_by = start_by_of(record.job, max(at, now))
    row.priority = one.priority or row.priority
    row.unique_key = one.unique_key
    row.limit_keys = _limit_keys(model, record, one)
    return row


def _set_limits(model: StoreModel, wanted: Sequence[Wanted]) -> None:
    """Of several limits for one key in one request the lowest counts."""
    told: dict[str, int] = {}
    for one in wanted:
        if one.concurrency is not None:
            key = key_text(one.concurrency.key)
            told[key] = min(one.concurrency.at_most, told.get(key, one.concurrency.at_most))
    model.limits |= told


def _limit_keys(model: StoreModel, record: JobRecord, one: Wanted | None) -> tuple[str, ...] | None:
    """Those with a limit; an execution's own key takes the place of its job's."""
    keys = record.limit_keys or ()
    if one is not None and one.concurrency is not None:
        own = key_text(one.concurrency.key)
        keys = (*(key for key in keys if not key.startswith("key:")), own)
    return tuple(key for key in keys if key in model.limits) or None


def _backfill(
    model: StoreModel, request: Request, asked: Instants, now: datetime
) -> list[tuple[ExecutionId, str]]:
    record = record_of(model, request.tenant_id, asked.job_id)
    answers, made = [], []
    for instant in dict.fromkeys(asked.instants):
        tenant, job_id, kind = request.tenant_id, asked.job_id, Trigger.BACKFILL
        own = requested_execution(tenant, job_id, kind, str(microseconds(instant)), instant)
        again = requested_execution(
            tenant, job_id, kind, f"{request.route} {request.request_id}", instant
        )
        twin = model.is_known([scheduled_execution(job_id, instant), own])
        if is_unsettled(record, instant):
            answers.append((again if twin and asked.rerun else twin or own, "UNSETTLED"))
        elif twin and not asked.rerun:
            answers.append((twin, "FILLED"))
        else:
            execution_id = again if twin else own
            row = model.add(record, execution_id, kind, instant, now)
            row.limit_keys = _limit_keys(model, record, None)
            made.append(row)
            answers.append((execution_id, "CREATED"))
    let_go(model, made)
    return answers


def is_unsettled(record: JobRecord, instant: datetime) -> bool:
    """Whether the schedule itself will come to it; of a paused job without a next instant nobody
    knows, so it is left alone."""
    if record.last_instant is not None and instant <= record.last_instant:
        return False
    if record.next_instant is None:
        return record.status is JobState.PAUSED
    return instant >= record.next_instant
