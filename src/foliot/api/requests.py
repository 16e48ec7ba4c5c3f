"""Executions that are asked for: from what was written to what the store enqueues."""

import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import Request

from foliot.api.auth import Visit
from foliot.api.hinting import tell_of_executions
from foliot.api.patience import insist
from foliot.api.schemas.executions import EnqueueItem, TriggerBody
from foliot.core.concurrency_keys import resolve_key
from foliot.core.errors import InvalidInput, JobNotFound
from foliot.core.limits import Limit, key_limit
from foliot.core.model import Json, Trigger
from foliot.store import enqueuing
from foliot.store.enqueuing import Absent, Enqueued, Wanted, enqueue, find_enqueued, in_list
from foliot.store.job_references import JobReference, resolve_jobs

# Somebody waits for a run that was asked for by hand.
TRIGGER_PRIORITY: Final = 2
_ROUTE: Final = "enqueue"
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*")


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks, under which mark the request is known again, and as part of which trace.

    `listed_as` is what the request calls its list, if it asks for many.
    """

    visit: Visit
    mark: str
    trace_id: str | None = None
    listed_as: str | None = None


def trace_of(request: Request) -> str | None:
    """The trace that the caller is in, by the header `traceparent`."""
    match = _TRACEPARENT.fullmatch(request.headers.get("traceparent", ""))
    return match[1] if match and match[1].strip("0") else None


async def trigger(asking: Asking, job_id: str, body: TriggerBody) -> Enqueued:
    (made,) = await _unless_made(asking, _trigger(asking, job_id, body))
    return made


async def enqueue_all(asking: Asking, items: Sequence[EnqueueItem]) -> list[Enqueued]:
    """All or none of them, in their order."""
    return await _unless_made(asking, _enqueue_all(asking, items))


async def _unless_made(asking: Asking, making: Awaitable[list[Enqueued]]) -> list[Enqueued]:
    """What an earlier copy of the request made is the answer, also if it could not be made now:
    its job may be deleted by then, or have another limit."""
    try:
        return await making
    except (InvalidInput, JobNotFound):
        visit = asking.visit
        made = await find_enqueued(visit.database, visit.tenant_id, _ROUTE, asking.mark)
        if made is None:
            raise
        return made


async def _trigger(asking: Asking, job_id: str, body: TriggerBody) -> list[Enqueued]:
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
    return await _enqueue(asking, [(job, wanted)])


async def _enqueue_all(asking: Asking, items: Sequence[EnqueueItem]) -> list[Enqueued]:
    visit = asking.visit
    jobs = await resolve_jobs(visit.database, visit.tenant_id, [item.job for item in items])
    return await _enqueue(
        asking,
        [
            (jobs[item.job], _wanted(asking, jobs[item.job], number, item))
            for number, item in enumerate(items)
        ],
    )


def _wanted(asking: Asking, job: JobReference, number: int, item: EnqueueItem) -> Wanted:
    try:
        concurrency = _concurrency(asking.visit, job, item.payload, item.concurrency_key)
    except InvalidInput as refused:
        raise in_list(refused, asking.listed_as, number) from None
    return Wanted(
        job.job_id,
        Trigger.ENQUEUE,
        payload=item.payload,
        priority=item.priority,
        run_at=item.run_at,
        delay_seconds=item.delay_seconds,
        labels=item.labels,
        concurrency=concurrency,
        unique_key=item.unique_key,
        trace_id=asking.trace_id,
    )


async def _enqueue(asking: Asking, asked: Sequence[tuple[JobReference, Wanted]]) -> list[Enqueued]:
    visit, seen_at = asking.visit, asked[0][0].now
    # A mark stands for one body, and what else has changed between two copies does not matter.
    request = enqueuing.Request(visit.tenant_id, _ROUTE, asking.mark, seen_at, contents=b"")
    wanted = [one for _, one in asked]
    made = await insist(
        lambda: enqueue(visit.database, request, wanted, listed_as=asking.listed_as)
    )
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
