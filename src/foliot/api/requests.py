"""Executions that are asked for: from what was written to what the store enqueues."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import Request

from foliot.api.auth import Visit
from foliot.api.hinting import tell_of_executions
from foliot.api.patience import insist
from foliot.api.schemas.executions import EnqueueItem, TriggerBody
from foliot.core.concurrency_keys import resolve_key
from foliot.core.errors import InvalidInput
from foliot.core.limits import Limit, key_limit
from foliot.core.model import Json, Trigger
from foliot.store import enqueuing
from foliot.store.enqueuing import Absent, Enqueued, Wanted, enqueue
from foliot.store.job_references import JobReference, resolve_jobs

# Somebody waits for a run that was asked for by hand.
TRIGGER_PRIORITY: Final = 2
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*")


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks, under which mark the request is known again, and as part of which trace."""

    visit: Visit
    mark: str
    trace_id: str | None = None


def trace_of(request: Request) -> str | None:
    """The trace that the caller is in, by the header `traceparent`."""
    match = _TRACEPARENT.fullmatch(request.headers.get("traceparent", ""))
    return match[1] if match and match[1].strip("0") else None


async def trigger(asking: Asking, job_id: str, body: TriggerBody) -> Enqueued:
    visit = asking.visit
    job = (await resolve_jobs(visit.database, visit.tenant_id, [job_id]))[job_id]
    wanted = Wanted(
        job.job_id,
        Trigger.MANUAL,
        payload=body.payload_override,
        priority=TRIGGER_PRIORITY if body.priority is None else body.priority,
        run_at=body.run_at,
        delay_seconds=body.delay_seconds,
        concurrency=_concurrency(visit, job, body.payload_override, None),
        trace_id=asking.trace_id,
    )
    (made,) = await _enqueue(asking, [(job, wanted)])
    return made


async def enqueue_all(asking: Asking, items: Sequence[EnqueueItem]) -> list[Enqueued]:
    """All or none of them, in their order."""
    visit = asking.visit
    jobs = await resolve_jobs(visit.database, visit.tenant_id, [item.job for item in items])
    return await _enqueue(
        asking, [(jobs[item.job], _wanted(asking, jobs[item.job], item)) for item in items]
    )


def _wanted(asking: Asking, job: JobReference, item: EnqueueItem) -> Wanted:
    return Wanted(
        job.job_id,
        Trigger.ENQUEUE,
        payload=item.payload,
        priority=item.priority,
        run_at=item.run_at,
        delay_seconds=item.delay_seconds,
        labels=item.labels,
        concurrency=_concurrency(asking.visit, job, item.payload, item.concurrency_key),
        unique_key=item.unique_key,
        trace_id=asking.trace_id,
    )


async def _enqueue(asking: Asking, asked: Sequence[tuple[JobReference, Wanted]]) -> list[Enqueued]:
    visit = asking.visit
    request = enqueuing.Request(visit.tenant_id, "enqueue", asking.mark, asked[0][0].now)
    wanted = [one for _, one in asked]
    made = await insist(lambda: enqueue(visit.database, request, wanted))
    tell_of_executions(visit.hints, asked)
    return made


def _concurrency(
    visit: Visit, job: JobReference, payload: Json | Absent, own_key: str | None
) -> Limit | None:
    """The key that this very execution is under, if it is not the one of the job's version."""
    template, at_most = job.concurrency.key, job.concurrency.limit
    if own_key is None and (template is None or "${" not in template or at_most is None):
        return None
    if at_most is None:
        raise InvalidInput(
            "the job has no concurrency limit",
            field="concurrency_key",
            hint="set concurrency.limit of the job: how many with one key may run at once",
        )
    if own_key is None:
        filled = job.payload if payload is Absent.ABSENT else payload
        own_key = resolve_key(template or "", filled)
    return key_limit(visit.tenant_id, own_key, at_most)
