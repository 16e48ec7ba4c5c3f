"""What can be done with a job, and what has become of it."""

from http import HTTPStatus
from itertools import pairwise
from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from foliot.api.answers import Answer
from foliot.api.auth import Visit, Visiting
from foliot.api.idempotency import once
from foliot.api.lists import execution_page, version_page
from foliot.api.patience import told
from foliot.api.requests import Asking, trace_of, trigger
from foliot.api.routes.executions import answer_execution
from foliot.api.routes.jobs import MeantJob, answer_job, change_status
from foliot.api.schemas.executions import TriggerBody
from foliot.api.schemas.jobs import NoteBody
from foliot.api.schemas.queries import JobExecutionQuery, ListQuery, NextQuery
from foliot.api.versions import expected_version
from foliot.api.views import preview_view
from foliot.core.ids import JobId
from foliot.core.schedule.occurrences import fires
from foliot.core.schedule.timeline import TICK
from foliot.core.states import JobState
from foliot.store.job_lists import page_versions
from foliot.store.job_rows import JobVersion, get
from foliot.store.request_keys import KeptRequest

routes = APIRouter(prefix="/v1/jobs/{job_id}", tags=["jobs"])

# Between two copies of a request hardly anybody changes a job as often.
_VERSIONS_SEEN: Final = 50


@routes.post("/pause")
@routes.patch("/pause")
async def pause_job(
    request: Request, visit: Visiting, job: MeantJob, body: NoteBody | None = None
) -> Response:
    return await _change_status(request, visit, job, body or NoteBody(), JobState.PAUSED)


@routes.post("/resume")
@routes.patch("/resume")
async def resume_job(
    request: Request, visit: Visiting, job: MeantJob, body: NoteBody | None = None
) -> Response:
    return await _change_status(request, visit, job, body or NoteBody(), JobState.ACTIVE)


@routes.post("/trigger", status_code=HTTPStatus.ACCEPTED)
async def trigger_job(
    request: Request, visit: Visiting, job: MeantJob, body: TriggerBody | None = None
) -> Response:
    async def work(_: UUID, mark: str) -> Answer:
        asking = Asking(visit, mark, trace_of(request))
        made = await trigger(asking, str(job), body or TriggerBody())
        return await answer_execution(visit, made.execution_id, HTTPStatus.ACCEPTED)

    return await once(request, visit, work)


@routes.get("/executions")
async def list_job_executions(
    visit: Visiting, job: MeantJob, query: Annotated[JobExecutionQuery, Query()]
) -> Response:
    """Also of a job that was deleted."""
    return (await execution_page(visit, query, job, of_job=True)).response()


@routes.get("/versions")
async def list_versions(
    visit: Visiting, job: MeantJob, query: Annotated[ListQuery, Query()]
) -> Response:
    return (await version_page(visit, job, query)).response()


@routes.get("/next")
async def list_next(
    visit: Visiting, job: MeantJob, query: Annotated[NextQuery, Query()]
) -> Response:
    """What will fire; of a paused job, what would if it were resumed now."""
    stored = await get(visit.database, visit.tenant_id, job)
    schedule, due = stored.job.schedule, stored.due
    after = stored.now
    if due is not None and stored.job.status is JobState.ACTIVE:
        after = due.expected - TICK
    coming = iter(()) if due is None else fires(schedule, due.facts, after)
    view = preview_view(schedule, coming, query.count, seed=str(job))
    return Answer(view).response()


async def _change_status(
    request: Request, visit: Visit, job_id: JobId, body: NoteBody, wanted: JobState
) -> Response:
    seen = expected_version(request, body.version)

    async def work(_: UUID, __: str) -> Answer:
        return await change_status(visit, job_id, wanted, body.note, seen)

    async def done(kept: KeptRequest) -> Answer | None:
        versions = await page_versions(
            visit.database, visit.tenant_id, job_id, before=None, limit=_VERSIONS_SEEN
        )
        ours = (visit.key_name, body.note)
        for later, earlier in pairwise(versions):
            if (
                later.valid_from >= kept.created_at
                and (later.changed_by, later.note) == ours
                and seen in (None, earlier.job.version)
                and _leads_to(wanted, earlier, later)
            ):
                return await told(_answer_as_it_is(visit, job_id))
        return None

    return await once(request, visit, work, done=done)


async def _answer_as_it_is(visit: Visit, job_id: JobId) -> Answer:
    return await answer_job(visit, await get(visit.database, visit.tenant_id, job_id))


def _leads_to(wanted: JobState, earlier: JobVersion, later: JobVersion) -> bool:
    """Whether it was paused or resumed between the two; what goes on may be over at once."""
    paused = (earlier.job.status is JobState.PAUSED, later.job.status is JobState.PAUSED)
    if wanted is JobState.PAUSED:
        return paused == (False, True)
    return paused == (True, False) and later.job.status is not JobState.DELETED
