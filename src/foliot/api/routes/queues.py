"""`/v1/queues`: how full they are; paused, resumed and limited by the operator."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from foliot.api.answers import Answer
from foliot.api.auth import Visiting
from foliot.api.idempotency import once
from foliot.api.lists import queue_page
from foliot.api.patience import insist
from foliot.api.schemas.queries import ListQuery
from foliot.api.schemas.queues import QueueBody, QueueNoteBody
from foliot.api.schemas.shape import is_storable_text
from foliot.api.views import queue_view
from foliot.core.errors import QueueNotFound
from foliot.store.queues import limit_queue, pause_queue, read_queue, resume_queue
from foliot.transport.port import Matter

routes = APIRouter(prefix="/v1/queues", tags=["queues"])


def meant_queue(name: str) -> str:
    if not is_storable_text(name):
        raise QueueNotFound(name)
    return name


MeantQueue = Annotated[str, Depends(meant_queue)]


@routes.get("")
async def list_queues(visit: Visiting, query: Annotated[ListQuery, Query()]) -> Response:
    return (await queue_page(visit, query)).response()


@routes.get("/{name}")
async def get_queue(visit: Visiting, name: MeantQueue) -> Response:
    return Answer(queue_view(await read_queue(visit.database, name))).response()


@routes.patch("/{name}")
async def patch_queue(visit: Visiting, name: MeantQueue, body: QueueBody) -> Response:
    """A limit that is null is taken away."""
    at_most = body.limit()
    found = await insist(lambda: limit_queue(visit.database, name, at_most))
    visit.hints.publish(Matter.WORK, [name])
    return Answer(queue_view(found)).response()


@routes.post("/{name}/pause")
async def pause(
    request: Request, visit: Visiting, name: MeantQueue, body: QueueNoteBody | None = None
) -> Response:
    """What runs goes on, nothing else of the queue starts."""
    note = body.note if body else None

    async def work(_: UUID, __: str) -> Answer:
        found = await insist(lambda: pause_queue(visit.database, name, note))
        return Answer(queue_view(found))

    return await once(request, visit, work)


@routes.post("/{name}/resume")
async def resume(
    request: Request, visit: Visiting, name: MeantQueue, body: QueueNoteBody | None = None
) -> Response:
    note = body.note if body else None

    async def work(_: UUID, __: str) -> Answer:
        found = await insist(lambda: resume_queue(visit.database, name, note))
        visit.hints.publish(Matter.WORK, [name])
        return Answer(queue_view(found))

    return await once(request, visit, work)
