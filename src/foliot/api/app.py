"""The application: routes, the error envelope, request ids. What it needs is handed to it."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from foliot.api import description, metrics
from foliot.api.auth import Doorkeeper
from foliot.api.errors import (
    answer_foliot_error,
    answer_http_exception,
    answer_validation_error,
)
from foliot.api.health import health_routes
from foliot.api.intake import BodyLimit, RequestIds
from foliot.api.routes import (
    dead_letters,
    deliveries,
    executions,
    fleet,
    job_actions,
    jobs,
    ledger,
    queues,
    reports,
    retries,
    schedules,
    secrets,
    signing_keys,
)
from foliot.core.allow_list import CLOSED, AllowList
from foliot.core.commands import NO_PROGRAMS, Programs
from foliot.core.errors import FoliotError
from foliot.runtime.clock import Clock
from foliot.runtime.envelope import Keyring
from foliot.runtime.health import Readiness
from foliot.store.database import Database
from foliot.transport.port import SILENCE, Publisher


@dataclass(frozen=True)
class Parts:
    """`api_key` is the operator's, and so is `callback_allow`: what callbacks may reach inside;
    `programs` are those that jobs may run. Without a `keyring` no secret can be written."""

    database: Database
    readiness: Readiness
    api_key: str
    new_request_id: Callable[[], str]
    clock: Clock
    callback_allow: AllowList = CLOSED
    hints: Publisher = SILENCE
    keyring: Keyring | None = None
    programs: Programs = NO_PROGRAMS


def create_app(parts: Parts) -> FastAPI:
    # Without an address of its own the framework serves no documentation pages either: they load
    # their scripts from a stranger's server.
    app = FastAPI(title="Foliot", version=version("foliot"), openapi_url=None)
    app.state.database = parts.database
    app.state.clock = parts.clock
    app.state.callback_allow = parts.callback_allow
    app.state.keyring = parts.keyring
    app.state.hints = parts.hints
    app.state.programs = parts.programs
    # The last one added is the first to see a request.
    app.add_middleware(BodyLimit)
    app.add_middleware(Doorkeeper, api_key=parts.api_key)
    app.add_middleware(RequestIds, new_id=parts.new_request_id)
    app.add_exception_handler(HTTPException, answer_http_exception)
    app.add_exception_handler(RequestValidationError, answer_validation_error)
    app.add_exception_handler(FoliotError, answer_foliot_error)
    app.include_router(health_routes(parts.readiness))
    for part in (description, metrics, jobs, job_actions, executions, reports, schedules, fleet):
        app.include_router(part.routes)
    app.include_router(secrets.routes)
    app.include_router(signing_keys.routes)
    app.include_router(deliveries.routes)
    app.include_router(dead_letters.routes)
    app.include_router(retries.routes)
    app.include_router(queues.routes)
    app.include_router(ledger.routes)
    return app
