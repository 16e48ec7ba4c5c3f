"""Is this node alive, and does the whole get on? The answers of `runtime.health`, as routes."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from foliot.runtime.health import ALIVE, EXCLUDE, Readiness, names_in, verdict

# Told to the description by hand: what is asked wrongly here is not refused, but does not count.
_PARAMETERS: Final = [
    {
        "name": EXCLUDE,
        "in": "query",
        "required": False,
        "schema": {"type": "string"},
        "description": "names of checks that do not count, separated by commas",
    }
]


def health_routes(readiness: Readiness) -> APIRouter:
    routes = APIRouter(tags=["health"])

    @routes.head("/livez", include_in_schema=False)
    @routes.get("/livez")
    async def livez() -> dict[str, str]:
        return ALIVE

    @routes.head("/readyz", include_in_schema=False)
    @routes.get("/readyz", openapi_extra={"parameters": _PARAMETERS})
    async def readyz(request: Request) -> JSONResponse:
        excluded = names_in(request.query_params.getlist(EXCLUDE))
        status, body = verdict(await readiness.checks(), excluded)
        return JSONResponse(body, status_code=status)

    return routes
