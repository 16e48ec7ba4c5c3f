"""Is this process alive, and can it do its work?

`/livez` depends on nothing. `/readyz` is 200 while the database answers within a second and its
schema is the one this code was written for or a newer one; otherwise 503 with the reasons in words.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Protocol

from fastapi import APIRouter
from starlette.responses import JSONResponse


@dataclass(frozen=True)
class Check:
    ok: bool
    detail: str


class Readiness(Protocol):
    async def checks(self) -> Mapping[str, Check]:
        """What readiness depends on, each with its state in words. Never raises, never hangs."""


def health_routes(readiness: Readiness) -> APIRouter:
    routes = APIRouter(tags=["health"])

    @routes.head("/livez", include_in_schema=False)
    @routes.get("/livez")
    async def livez() -> dict[str, str]:
        return {"status": "alive"}

    @routes.head("/readyz", include_in_schema=False)
    @routes.get("/readyz")
    async def readyz() -> JSONResponse:
        checks = await readiness.checks()
        ready = all(check.ok for check in checks.values())
        return JSONResponse(
            {
                "status": "ready" if ready else "not ready",
                "checks": {name: asdict(check) for name, check in checks.items()},
            },
            status_code=HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE,
        )

    return routes
