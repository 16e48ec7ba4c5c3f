"""The application: routes, the error envelope, request ids. What it needs is handed to it."""

from collections.abc import Callable
from importlib.metadata import version

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from foliot.api.errors import RequestIds, answer_http_exception
from foliot.api.health import Readiness, health_routes


def create_app(readiness: Readiness, new_request_id: Callable[[], str]) -> FastAPI:
    # The framework's own documentation pages load their scripts from a stranger's server.
    app = FastAPI(title="Foliot", version=version("foliot"), docs_url=None, redoc_url=None)
    app.add_middleware(RequestIds, new_id=new_request_id)
    app.add_exception_handler(HTTPException, answer_http_exception)
    app.include_router(health_routes(readiness))
    return app
