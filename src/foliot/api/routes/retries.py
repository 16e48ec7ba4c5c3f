"""`/v1/executions/{id}/retry`: what is over, once more, as a new execution that names the old."""

from http import HTTPStatus
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import Response

from foliot.api.answers import Answer
from foliot.api.auth import Visiting
from foliot.api.idempotency import once
from foliot.api.replays import retry
from foliot.api.requests import Asking, trace_of
from foliot.api.routes.executions import PREFIX, MeantExecution, answer_replay
from foliot.api.schemas.dead_letters import ReplayBody
from foliot.store.replaying import Replay

routes = APIRouter(prefix=f"{PREFIX}/{{execution_id}}/retry", tags=["executions"])


@routes.post("", status_code=HTTPStatus.ACCEPTED)
async def retry_execution(
    request: Request, visit: Visiting, execution: MeantExecution, body: ReplayBody | None = None
) -> Response:
    """202 with the new execution. Of what has a dead letter, 200 with the one there is, if any."""
    payload = (body or ReplayBody()).payload_override
    wanted = Replay(execution, payload, trace_id=trace_of(request))

    async def work(_: UUID, mark: str) -> Answer:
        return await answer_replay(visit, await retry(Asking(visit, mark), wanted))

    return await once(request, visit, work)
