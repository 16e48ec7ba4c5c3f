"""`/v1/workers` and `/v1/schedulers`: who takes part."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from foliot.api.answers import Answer
from foliot.api.auth import Visiting
from foliot.api.lists import worker_page
from foliot.api.schemas.queries import WorkerQuery
from foliot.api.views import schedulers_view
from foliot.store.fleet import read_schedulers

routes = APIRouter(prefix="/v1", tags=["fleet"])


@routes.get("/workers")
async def list_workers(visit: Visiting, query: Annotated[WorkerQuery, Query()]) -> Response:
    return (await worker_page(visit, query)).response()


@routes.get("/schedulers")
async def list_schedulers(visit: Visiting) -> Response:
    """The nodes, the shards that each holds, and how late the latest due job is."""
    return Answer(schedulers_view(await read_schedulers(visit.database))).response()
