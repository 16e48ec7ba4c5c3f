"""`/v1/executions`: asked for, listed, read, cancelled."""

from http import HTTPStatus
from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from foliot.api.answers import Answer
from foliot.api.auth import Visit, Visiting
from foliot.api.hinting import tell_of_cancels
from foliot.api.idempotency import once
from foliot.api.lists import execution_page, log_page
from foliot.api.patience import insist, told
from foliot.api.refusals import ExecutionFinished, ExecutionNotFound
from foliot.api.requests import Asking, enqueue_all, trace_of
from foliot.api.schemas.executions import BulkBody, CancelBody, EnqueueBody
from foliot.api.schemas.queries import ExecutionQuery, LogQuery, meant_id
from foliot.api.views import explanation_view
from foliot.api.waiting import until_over, wanted_seconds
from foliot.core.ids import ExecutionId, JobId
from foliot.core.states import TERMINAL, ExecutionState
from foliot.store.cancelling import cancel
from foliot.store.enqueuing import Outcome
from foliot.store.execution_rows import StoredExecution, read_executions
from foliot.store.execution_views import execution_view
from foliot.store.explaining import explain_execution
from foliot.store.job_references import as_uuid
from foliot.store.replaying import Replayed

PREFIX: Final = "/v1/executions"
CANCEL_REASON: Final = "cancelled on request"

routes = APIRouter(prefix=PREFIX, tags=["executions"])


def meant_execution(execution_id: str) -> ExecutionId:
    found = as_uuid(execution_id)
    if found is None:
        raise ExecutionNotFound(execution_id)
    return ExecutionId(found)


MeantExecution = Annotated[ExecutionId, Depends(meant_execution)]


@routes.post("", status_code=HTTPStatus.ACCEPTED)
async def enqueue_execution(request: Request, visit: Visiting, body: EnqueueBody) -> Response:
    """200 with the execution that there is, if a live one has the unique key."""

    async def work(_: UUID, mark: str) -> Answer:
        (made,) = await enqueue_all(Asking(visit, mark, trace_of(request)), [body])
        there = made.outcome is Outcome.EXISTS
        status = HTTPStatus.OK if there else HTTPStatus.ACCEPTED
        return await answer_execution(visit, made.execution_id, status)

    return await once(request, visit, work)


@routes.post("/bulk", status_code=HTTPStatus.ACCEPTED)
async def enqueue_executions(request: Request, visit: Visiting, body: BulkBody) -> Response:
    """All of them or none; the answers are in their order."""

    async def work(_: UUID, mark: str) -> Answer:
        asking = Asking(visit, mark, trace_of(request), listed_as="executions")
        made = await enqueue_all(asking, body.executions)
        items = [
            {"execution_id": each.execution_id, "created": each.outcome is Outcome.CREATED}
            for each in made
        ]
        return Answer({"items": items}, HTTPStatus.ACCEPTED)

    return await once(request, visit, work)


@routes.get("")
async def list_executions(visit: Visiting, query: Annotated[ExecutionQuery, Query()]) -> Response:
    job_id = JobId(meant_id(query.job_id)) if query.job_id else None
    return (await execution_page(visit, query, job_id)).response()


@routes.get("/{execution_id}")
async def read_execution(request: Request, visit: Visiting, execution: MeantExecution) -> Response:
    """With `Prefer: wait=30`, once it is over or after so many seconds."""
    seconds = wanted_seconds(request)
    found = await until_over(visit, execution, seconds, request.app.state.clock)
    if found is None:
        raise ExecutionNotFound(str(execution))
    applied = {"Preference-Applied": f"wait={seconds}"} if seconds else {}
    return Answer(execution_view(found), headers=applied).response()


@routes.get("/{execution_id}/explain")
async def explain(visit: Visiting, execution: MeantExecution) -> Response:
    """Why it is not running: what stands in its way, the first to go first."""
    found = await explain_execution(visit.database, visit.tenant_id, execution)
    if found is None:
        raise ExecutionNotFound(str(execution))
    return Answer(explanation_view(found)).response()


@routes.get("/{execution_id}/logs")
async def read_logs(
    visit: Visiting, execution: MeantExecution, query: Annotated[LogQuery, Query()]
) -> Response:
    """What its attempts said, the oldest first; of a level, that one and more serious ones."""
    await _read(visit, execution)
    return (await log_page(visit, execution, query)).response()


@routes.post("/{execution_id}/cancel", status_code=HTTPStatus.ACCEPTED)
async def cancel_execution(
    request: Request, visit: Visiting, execution: MeantExecution, body: CancelBody | None = None
) -> Response:
    reason = (body and body.reason) or CANCEL_REASON

    async def work(_: UUID, __: str) -> Answer:
        asked = await insist(lambda: cancel(visit.database, visit.tenant_id, [execution], reason))
        tell_of_cancels(visit.hints, asked)
        found = await told(_read(visit, execution))
        if found.status in TERMINAL and found.status is not ExecutionState.CANCELLED:
            raise ExecutionFinished(str(execution), found.status)
        return Answer(execution_view(found), HTTPStatus.ACCEPTED)

    return await once(request, visit, work)


async def answer_execution(visit: Visit, execution_id: ExecutionId, status: HTTPStatus) -> Answer:
    """For what was just made."""
    found = await told(_read(visit, execution_id))
    return Answer(execution_view(found), status, {"Location": f"{PREFIX}/{execution_id}"})


async def answer_replay(visit: Visit, made: Replayed) -> Answer:
    """202 with the new execution, or 200 with the one that was made before."""
    status = HTTPStatus.ACCEPTED if made.created else HTTPStatus.OK
    return await answer_execution(visit, made.execution_id, status)


async def _read(visit: Visit, execution_id: ExecutionId) -> StoredExecution:
    found = await read_executions(visit.database, visit.tenant_id, [execution_id])
    if execution_id not in found:
        raise ExecutionNotFound(str(execution_id))
    return found[execution_id]
