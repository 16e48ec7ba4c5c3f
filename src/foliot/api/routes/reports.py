"""`/v1/executions/{id}/progress`, `/complete`, `/fail`: for HTTP targets that took one over."""

from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import Response

from foliot.api import reporting
from foliot.api.answers import Answer
from foliot.api.auth import Visit, Visiting
from foliot.api.idempotency import once
from foliot.api.patience import told
from foliot.api.refusals import ExecutionNotFound
from foliot.api.routes.executions import PREFIX, MeantExecution
from foliot.api.schemas.executions import CompleteBody, FailBody, ProgressBody
from foliot.core.ids import ExecutionId
from foliot.store.execution_rows import read_executions
from foliot.store.execution_views import execution_view
from foliot.store.request_keys import KeptRequest

routes = APIRouter(prefix=PREFIX, tags=["executions"])


@routes.post("/{execution_id}/progress")
async def report_progress(
    visit: Visiting, execution: MeantExecution, body: ProgressBody
) -> Response:
    """The answer says whether it was asked to be cancelled meanwhile."""
    asked = await reporting.progress(visit, execution, body)
    return Answer({"execution_id": execution, "cancel_requested": asked}).response()


@routes.post("/{execution_id}/complete")
async def complete_execution(
    request: Request, visit: Visiting, execution: MeantExecution, body: CompleteBody
) -> Response:
    """SUCCEEDED with this result; what was asked to be cancelled is CANCELLED all the same."""

    async def work(_: UUID, __: str) -> Answer:
        await reporting.complete(visit, execution, body)
        return await told(_answer(visit, execution))

    async def done(kept: KeptRequest) -> Answer | None:
        completed = await reporting.was_completed(visit, execution, body, kept.created_at)
        return await told(_answer(visit, execution)) if completed else None

    return await once(request, visit, work, done=done)


@routes.post("/{execution_id}/fail")
async def fail_execution(
    request: Request, visit: Visiting, execution: MeantExecution, body: FailBody
) -> Response:
    """This attempt failed; whether another follows is for the job's retry policy to say."""

    async def work(_: UUID, __: str) -> Answer:
        await reporting.fail(visit, execution, body)
        return await told(_answer(visit, execution))

    async def done(kept: KeptRequest) -> Answer | None:
        failed = await reporting.was_failed(visit, execution, body, kept.created_at)
        return await told(_answer(visit, execution)) if failed else None

    return await once(request, visit, work, done=done)


async def _answer(visit: Visit, execution_id: ExecutionId) -> Answer:
    found = await read_executions(visit.database, visit.tenant_id, [execution_id])
    if execution_id not in found:
        raise ExecutionNotFound(str(execution_id))
    return Answer(execution_view(found[execution_id]))
