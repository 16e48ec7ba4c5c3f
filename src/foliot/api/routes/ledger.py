"""`/v1/ledger`: does every scheduled instant have exactly one outcome?"""

from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.answers import Answer
from foliot.api.auth import Visiting
from foliot.api.ledger import verify
from foliot.api.schemas.ledger import VerifyBody

routes = APIRouter(prefix="/v1/ledger", tags=["ledger"])


@routes.post("/verify")
async def verify_ledger(visit: Visiting, body: VerifyBody | None = None) -> Response:
    """Recounts the instants of every schedule in force and holds the outcomes against them."""
    return Answer(await verify(visit, body or VerifyBody())).response()
