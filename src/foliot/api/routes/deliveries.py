"""`/v1/executions/{id}/deliveries`: whether its end was told, every try, and once more."""

from http import HTTPStatus
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import Response

from foliot.api.answers import Answer, page_of
from foliot.api.auth import Visit, Visiting
from foliot.api.idempotency import once
from foliot.api.patience import insist, told
from foliot.api.refusals import ExecutionNotFound
from foliot.api.routes.executions import PREFIX, MeantExecution
from foliot.api.schemas.executions import RedeliverBody
from foliot.core.delivery import event_type_of, message_id_of
from foliot.core.errors import InvalidInput
from foliot.core.ids import ExecutionId
from foliot.store import deliveries as store
from foliot.store.deliveries import DeliveryState, StoredDelivery
from foliot.store.execution_rows import read_executions
from foliot.store.execution_views import View

routes = APIRouter(prefix=f"{PREFIX}/{{execution_id}}/deliveries", tags=["deliveries"])


@routes.get("")
async def list_deliveries(visit: Visiting, execution: MeantExecution) -> Response:
    """None as long as it is not over, or if its job has no callback_url."""
    found = await _find(visit, execution)
    return page_of([_view(each) for each in found], None).response()


@routes.post("/redeliver", status_code=HTTPStatus.ACCEPTED)
async def redeliver(
    request: Request, visit: Visiting, execution: MeantExecution, body: RedeliverBody | None = None
) -> Response:
    """Also what was delivered, or given up. The message keeps its id."""
    del body  # its key is read with the request's others

    async def work(_: UUID, __: str) -> Answer:
        if not await _find(visit, execution):
            raise InvalidInput(
                "has no completion callback",
                field="execution_id",
                hint="it is written when an execution of a job with a callback_url ends",
            )
        await insist(lambda: store.redeliver(visit.database, visit.tenant_id, execution))
        found = await told(_find(visit, execution))
        return Answer(_view(found[0]), HTTPStatus.ACCEPTED)

    return await once(request, visit, work)


async def _find(visit: Visit, execution: ExecutionId) -> list[StoredDelivery]:
    found = await store.list_deliveries(visit.database, visit.tenant_id, execution)
    if not found and not await read_executions(visit.database, visit.tenant_id, [execution]):
        raise ExecutionNotFound(str(execution))
    return found


def _view(stored: StoredDelivery) -> View:
    waits = stored.state is DeliveryState.PENDING
    return {
        "message_id": message_id_of(stored.execution_id),
        "execution_id": stored.execution_id,
        "type": event_type_of(stored.status),
        "status": stored.state,
        "attempt_number": stored.attempt_number,
        "created_at": stored.created_at,
        "next_attempt_at": stored.next_attempt_at if waits else None,
        "redelivered_at": stored.redelivered_at,
        "delivered_at": stored.delivered_at,
        "given_up_at": stored.given_up_at,
        "attempts": stored.attempts,
    }
