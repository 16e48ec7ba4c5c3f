"""`/v1/jobs`: made, listed, read, changed, deleted."""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

from fastapi import APIRouter, Body, Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.responses import Response

from foliot.api.answers import Answer
from foliot.api.auth import Visit, Visiting
from foliot.api.drafts import job_of, merged
from foliot.api.hinting import tell_of_job, tell_of_settled_job
from foliot.api.idempotency import once
from foliot.api.lists import job_page
from foliot.api.patience import insist, told
from foliot.api.refusals import VersionRequired
from foliot.api.schemas.jobs import JobBody, StatusBody, WholeJobBody
from foliot.api.schemas.queries import JobQuery
from foliot.api.schemas.shape import Shape
from foliot.api.versions import etag, expected_version, is_conditional
from foliot.api.views import job_view
from foliot.core.errors import InvalidInput, JobNotFound, VersionConflict
from foliot.core.ids import JobId
from foliot.core.states import JobState
from foliot.store import jobs as store
from foliot.store.job_lists import page_versions, read_recent_ends
from foliot.store.job_references import as_uuid
from foliot.store.job_rows import StoredJob, get

routes = APIRouter(prefix="/v1/jobs", tags=["jobs"])

_PATCH_TRIES: Final = 5
Checked = TypeVar("Checked", bound=Shape)


def meant_job(job_id: str) -> JobId:
    """What is no id at all is answered like an unknown one."""
    found = as_uuid(job_id)
    if found is None:
        raise JobNotFound(job_id)
    return JobId(found)


MeantJob = Annotated[JobId, Depends(meant_job)]


@routes.post("", status_code=HTTPStatus.CREATED)
async def create_job(request: Request, visit: Visiting, body: JobBody) -> Response:
    if body.version is not None:
        raise InvalidInput("is set by Foliot", field="version", hint="leave it out")

    async def work(made: UUID, _: str) -> Answer:
        job = await job_of(visit, body, JobId(made))
        stored = await insist(lambda: store.create(visit.database, job, changed_by=visit.key_name))
        tell_of_job(visit.hints, stored)
        location = {"Location": f"{routes.prefix}/{stored.job.job_id}"}
        return await told(answer_job(visit, stored, HTTPStatus.CREATED, location))

    return await once(request, visit, work)


@routes.get("")
async def list_jobs(visit: Visiting, query: Annotated[JobQuery, Query()]) -> Response:
    return (await job_page(visit, query)).response()


@routes.get("/{job_id}")
async def read_job(visit: Visiting, job: MeantJob) -> Response:
    stored = await get(visit.database, visit.tenant_id, job)
    return (await answer_job(visit, stored)).response()


@routes.put("/{job_id}")
async def replace_job(
    request: Request, visit: Visiting, job: MeantJob, body: WholeJobBody
) -> Response:
    if not is_conditional(request, body.version):
        raise VersionRequired
    known = await get(visit.database, visit.tenant_id, job)
    return await _update(visit, known, body, expected_version(request, body.version))


@routes.patch("/{job_id}")
async def change_job(
    request: Request, visit: Visiting, job: MeantJob, body: Annotated[dict[str, Any], Body()]
) -> Response:
    """The fields that are given; or, by itself, a status: PAUSED or ACTIVE."""
    if "status" in body:
        _check_status_alone(body)
        wanted = _checked(StatusBody, body)
        return await _change_status(request, visit, job, wanted)
    for tries_left in reversed(range(_PATCH_TRIES)):
        known = await get(visit.database, visit.tenant_id, job)
        whole = _checked(JobBody, merged(known.job, body))
        seen = expected_version(request, whole.version)
        try:
            # What is written was made of the version that was read: no other may be lost by it.
            return await _update(visit, known, whole, seen or known.job.version)
        except VersionConflict:
            if seen is not None or not tries_left:
                raise
    raise JobNotFound(job)


@routes.delete("/{job_id}")
async def delete_job(request: Request, visit: Visiting, job: MeantJob) -> Response:
    """What waits of it is cancelled, what runs may finish; its executions stay readable."""
    seen = expected_version(request, None)
    known = await get(visit.database, visit.tenant_id, job)
    await insist(
        lambda: store.delete(
            visit.database,
            visit.tenant_id,
            job,
            changed_by=visit.key_name,
            expected_version=seen,
        ),
        repeatable=False,
    )
    return (await told(_answer_deleted(visit, known))).response()


async def change_status(
    visit: Visit, job_id: JobId, wanted: JobState, note: str | None, seen: int | None
) -> Answer:
    """Pause or resume, whichever leads there."""
    change = store.pause if wanted is JobState.PAUSED else store.resume
    stored = await insist(
        lambda: change(
            visit.database,
            visit.tenant_id,
            job_id,
            changed_by=visit.key_name,
            note=note,
            expected_version=seen,
        ),
        repeatable=seen is None,
    )
    tell_of_settled_job(visit.hints, stored)
    return await told(answer_job(visit, stored))


async def answer_job(
    visit: Visit,
    stored: StoredJob,
    status: HTTPStatus = HTTPStatus.OK,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    job = stored.job
    ends = await read_recent_ends(visit.database, visit.tenant_id, [job.job_id], 1)
    view = job_view(stored, ends[job.job_id])
    return Answer(view, status, {"ETag": etag(job.version), **(headers or {})})


async def _update(visit: Visit, known: StoredJob, body: JobBody, seen: int | None) -> Response:
    job = await job_of(visit, body, known.job.job_id, known.job.name)
    stored = await insist(
        lambda: store.update(visit.database, job, changed_by=visit.key_name, expected_version=seen),
        repeatable=False,
    )
    tell_of_settled_job(visit.hints, stored)
    return (await told(answer_job(visit, stored))).response()


async def _answer_deleted(visit: Visit, known: StoredJob) -> Answer:
    job_id = known.job.job_id
    (last,) = await page_versions(visit.database, visit.tenant_id, job_id, before=None, limit=1)
    gone = replace(known, job=last.job, next_run_at=None, updated_at=last.valid_from)
    return await answer_job(visit, gone)


async def _change_status(
    request: Request, visit: Visit, job_id: JobId, wanted: StatusBody
) -> Response:
    if wanted.status not in (JobState.ACTIVE, JobState.PAUSED):
        raise InvalidInput(
            f"a job cannot be made {wanted.status}",
            field="status",
            hint="PAUSED pauses it and ACTIVE resumes it; DELETE deletes it",
        )
    seen = expected_version(request, wanted.version)
    answer = await change_status(visit, job_id, wanted.status, wanted.note, seen)
    return answer.response()


def _check_status_alone(body: Mapping[str, Any]) -> None:
    others = [name for name in body if name in JobBody.model_fields and name != "version"]
    if others:
        hint = f"send a second request for {', '.join(others)}"
        raise InvalidInput("is changed by itself", field="status", hint=hint)


def _checked(shape: type[Checked], document: Mapping[str, Any]) -> Checked:
    """As the framework checks a body."""
    try:
        return shape.model_validate(document)
    except ValidationError as refused:
        errors = [
            {**error, "loc": ("body", *error["loc"])}
            for error in refused.errors(include_url=False, include_input=False)
        ]
        raise RequestValidationError(errors) from None
