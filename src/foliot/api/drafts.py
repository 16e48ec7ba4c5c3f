"""From a request to a job: what was written, joined with what the store and the core must add."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from foliot.api import aliases
from foliot.api.answers import encode
from foliot.api.auth import Visit
from foliot.api.callbacks import check_callbacks
from foliot.api.schemas.jobs import READ_ONLY, JobBody
from foliot.api.schemas.schedules import ScheduleBody
from foliot.api.views import definition_view
from foliot.core.commands import check_allowed, check_command
from foliot.core.errors import InvalidInput, InvalidSchedule, JobNotFound
from foliot.core.ids import JobId
from foliot.core.model import (
    CommandTarget,
    HandlerTarget,
    HttpTarget,
    Job,
    Schedule,
    ScheduleType,
    Target,
)
from foliot.core.schedule.check import validate
from foliot.core.secret_references import check_job
from foliot.core.storable import check_storable
from foliot.store.enqueuing import PAYLOAD_BYTES_MAX
from foliot.store.job_references import resolve_jobs

_ONE_OFF: Final = frozenset({ScheduleType.ONE_TIME, ScheduleType.DELAYED, ScheduleType.IMMEDIATE})
# Objects of the contract: a patch changes their fields. All else is replaced as a whole.
_MERGED: Final = (
    "schedule",
    "target",
    "retry_policy",
    "concurrency",
    "rate_limit",
    "dead_letter",
)
# What a job cannot be without; null sets all else back to its default.
_NEEDED: Final = ("schedule", "target")
# Fields that belong to some types of schedule only: another type begins without them.
_OF_A_TYPE: Final = frozenset(
    {
        "cron_expression",
        "interval_seconds",
        "run_at",
        "delay_seconds",
        "after",
        "start_at",
        "end_at",
        "max_runs",
        "calendar",
        "jitter_seconds",
        "misfire_grace_seconds",
    }
)


async def job_of(visit: Visit, body: JobBody, job_id: JobId, name: str | None = None) -> Job:
    """The job that `body` describes; without a name of its own it keeps `name`."""
    if body.payload is not None:
        check_storable(body.payload, "payload", PAYLOAD_BYTES_MAX)
    schedule = await schedule_of(visit, body.schedule)
    validate(schedule)
    target = body.target.target()
    job = Job(
        job_id=job_id,
        tenant_id=visit.tenant_id,
        name=body.name or name or _name(schedule, target, job_id),
        schedule=schedule,
        target=target,
        created_by=visit.key_name,
        retry_policy=body.retry_policy.policy(),
        concurrency=body.concurrency.concurrency(),
        rate_limit=body.rate_limit.rate_limit(),
        dead_letter=body.dead_letter.dead_letter(),
        requires=frozenset(body.requires),
        tags=tuple(dict.fromkeys(body.tags)),
    )
    whole = replace(job, **{name: getattr(body, name) for name in _AS_WRITTEN})
    check_job(whole)
    if isinstance(target, CommandTarget):
        check_command(target)
        check_allowed(target.argv[0], visit.programs)
    await check_callbacks(visit, whole)
    return whole


_AS_WRITTEN: Final = (
    "description",
    "payload",
    "timeout_seconds",
    "cancel_grace_seconds",
    "start_deadline_seconds",
    "priority",
    "queue",
    "region",
    "callback_url",
    "labels",
    "managed_by",
)


async def schedule_of(visit: Visit, body: ScheduleBody) -> Schedule:
    """With the jobs that it follows found by name."""
    if not body.parents():
        return body.schedule({})
    try:
        found = await resolve_jobs(visit.database, visit.tenant_id, body.parents())
    except JobNotFound as missing:
        hint = "name jobs that are there, by name or id"
        raise InvalidSchedule(str(missing), field="after.jobs", hint=hint) from None
    return body.schedule({written: job.job_id for written, job in found.items()})


def _name(schedule: Schedule, target: Target, job_id: JobId) -> str:
    """Of a job that runs once and was given none."""
    if schedule.type not in _ONE_OFF:
        raise InvalidInput(
            "is missing", field="name", hint="a job that runs more than once needs one"
        )
    match target:
        case HandlerTarget(name):
            work = name
        case HttpTarget():
            work = "call"
        case _:
            work = "command"
    return f"{work[:150]}-{job_id.hex[:12]}"


def merged(job: Job, patch: Mapping[str, Any]) -> dict[str, Any]:
    """The job as `patch` makes it, still as it is written in requests."""
    whole: dict[str, Any] = msgspec.json.decode(encode(definition_view(job)))
    document = {name: value for name, value in whole.items() if name not in READ_ONLY}
    del document["version"]
    for name, value in aliases.expand_names(patch).items():
        known = document.get(name)
        if name in _NEEDED and value is None:
            hint = "leave it out, or say what it is from now on"
            raise InvalidInput("a job cannot be without it", field=name, hint=hint)
        if name in _MERGED and isinstance(value, dict) and isinstance(known, dict):
            document[name] = _merged_part(name, known, value)
        else:
            document[name] = value
    return document


def _merged_part(name: str, known: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    kind = patch.get("type")
    if isinstance(kind, str) and kind.upper() != known.get("type"):
        if name == "target":
            return dict(patch)
        known = {field: value for field, value in known.items() if field not in _OF_A_TYPE}
    return {**known, **patch}
