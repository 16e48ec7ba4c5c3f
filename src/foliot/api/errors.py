"""Where failures become HTTP: one envelope for all of them, or problem+json for those who ask.

Every code has one status. What the database says about itself goes to the log, not to the caller.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from foliot.api.refusals import AnswerLost
from foliot.core.errors import CycleDetected, FoliotError, IllegalTransition, InvalidInput
from foliot.store.errors import (
    CommitUnknown,
    DatabaseError,
    DatabaseUnreachable,
    StatementFailed,
    TransactionConflict,
)

log = logging.getLogger(__name__)

PROBLEM_JSON: Final = "application/problem+json"
_STATUSES: Final[Mapping[str, HTTPStatus]] = {
    "VALIDATION_ERROR": HTTPStatus.BAD_REQUEST,
    "INVALID_CRON": HTTPStatus.BAD_REQUEST,
    "INVALID_TIMEZONE": HTTPStatus.BAD_REQUEST,
    "INVALID_SCHEDULE": HTTPStatus.BAD_REQUEST,
    "INVALID_CURSOR": HTTPStatus.BAD_REQUEST,
    "UNAUTHENTICATED": HTTPStatus.UNAUTHORIZED,
    "FORBIDDEN": HTTPStatus.FORBIDDEN,
    "JOB_ALREADY_EXISTS": HTTPStatus.CONFLICT,
    "IDEMPOTENCY_IN_FLIGHT": HTTPStatus.CONFLICT,
    "VERSION_CONFLICT": HTTPStatus.CONFLICT,
    "EXECUTION_FINISHED": HTTPStatus.CONFLICT,
    "SUPERSEDED": HTTPStatus.CONFLICT,
    "RUN_NOT_FINISHED": HTTPStatus.CONFLICT,
    "DEAD_LETTER_CLOSED": HTTPStatus.CONFLICT,
    "CYCLE_DETECTED": HTTPStatus.CONFLICT,
    "PAYLOAD_TOO_LARGE": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "IDEMPOTENCY_KEY_REUSED": HTTPStatus.UNPROCESSABLE_ENTITY,
    "VERSION_REQUIRED": HTTPStatus.PRECONDITION_REQUIRED,
    "SCHEDULER_UNAVAILABLE": HTTPStatus.SERVICE_UNAVAILABLE,
}
# What the router itself refuses has no code of the contract but these.
_ROUTER_CODES: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.BAD_REQUEST: "VALIDATION_ERROR",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "PAYLOAD_TOO_LARGE",
}
_ROUTER_HINTS: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.BAD_REQUEST: "send JSON, as UTF-8",
    HTTPStatus.NOT_FOUND: "GET /openapi.json lists the paths there are",
    HTTPStatus.METHOD_NOT_ALLOWED: "the Allow header lists the methods this path takes",
}
_TARGET_TYPES: Final = ("HTTP", "HANDLER", "COMMAND")
_LOST: Final = "the database is out of reach; nothing was changed"
_BUSY: Final = "the database took too long, or was too busy; nothing was changed"
_UNKNOWN: Final = "the database did not confirm the change: it may or may not have been made"
_MADE: Final = "the change was made, and the database went away before it could be told"
_BUG: Final = "something went wrong on our side; the server's log has it under this id"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is told to the caller; `details` has one entry for each field that is wrong."""

    status: HTTPStatus
    code: str
    message: str
    hint: str | None = None
    details: Sequence[Mapping[str, Any]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


BUG: Final = Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", _BUG)


def respond(problem: Problem, scope: Scope) -> Response:
    """In the form that the caller's `Accept` asks for."""
    request_id = scope["state"]["request_id"]
    shared = {"request_id": request_id, "details": list(problem.details), "hint": problem.hint}
    if PROBLEM_JSON in Headers(scope=scope).get("accept", ""):
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": problem.status.phrase,
            "status": int(problem.status),
            "detail": problem.message,
            "code": problem.code,
            **shared,
        }
        media_type = PROBLEM_JSON
    else:
        body = {"error": {"code": problem.code, "message": problem.message, **shared}}
        media_type = "application/json"
    text = json.dumps(body, separators=(",", ":"))
    return Response(text, problem.status, dict(problem.headers), media_type)


def problem_of(error: FoliotError, request_id: str) -> Problem:
    if isinstance(error, DatabaseError):
        return _database_problem(error, request_id)
    if isinstance(error, IllegalTransition):
        return Problem(HTTPStatus.BAD_REQUEST, "VALIDATION_ERROR", str(error))
    hint = getattr(error, "hint", None)
    status = _status(error.code)
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request %s failed: %s", request_id, error)
        return BUG
    headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else {}
    if isinstance(error, InvalidInput):
        message = f"{error.field}: {error.reason}" if error.field else error.reason
        return Problem(status, error.code, message, hint, _input_details(error), headers)
    return Problem(status, error.code, str(error), hint, (), headers)


def _input_details(error: InvalidInput) -> list[Mapping[str, Any]]:
    details: dict[str, Any] = {"field": error.field, "message": error.reason, "hint": error.hint}
    if isinstance(error, CycleDetected):
        details["cycle"] = list(error.cycle)
    return [details]


def _status(code: str) -> HTTPStatus:
    if code.endswith("_NOT_FOUND"):
        return HTTPStatus.NOT_FOUND
    return _STATUSES.get(code, HTTPStatus.INTERNAL_SERVER_ERROR)


def _database_problem(error: DatabaseError, request_id: str) -> Problem:
    # An outage is told once, by whoever watches the database: not again for each request.
    level = logging.DEBUG if isinstance(error, DatabaseUnreachable) else logging.WARNING
    log.log(level, "request %s failed: %s", request_id, error)
    if isinstance(error, StatementFailed):
        return BUG
    message, hint = _LOST, "try again in a moment"
    if isinstance(error, AnswerLost):
        message, hint = _MADE, "read it; to send it again is safe with the same Idempotency-Key"
    elif isinstance(error, CommitUnknown):
        message, hint = _UNKNOWN, "send it again with the same Idempotency-Key"
    elif isinstance(error, TransactionConflict):
        message, hint = _BUSY, "try again in a moment; ask a list for less"
    return Problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "SCHEDULER_UNAVAILABLE",
        message,
        hint,
        headers={"Retry-After": "1"},
    )


async def answer_foliot_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, FoliotError):
        raise error
    return respond(problem_of(error, request.state.request_id), request.scope)


async def answer_http_exception(request: Request, error: Exception) -> Response:
    """What the router itself refuses: an unknown path, a method the path does not take."""
    if not isinstance(error, HTTPException):
        raise error
    status = HTTPStatus(error.status_code)
    code = _ROUTER_CODES.get(status, status.name)
    message = f"{status.phrase}: {request.method} {request.url.path}"
    if code in _STATUSES:
        message = str(error.detail)
    hint = _ROUTER_HINTS.get(status)
    return respond(Problem(status, code, message, hint, (), error.headers or {}), request.scope)


async def answer_validation_error(request: Request, error: Exception) -> Response:
    """Every field that is wrong, each with what is wrong about it."""
    if not isinstance(error, RequestValidationError):
        raise error
    details = [_detail(one) for one in error.errors()]
    first = details[0]
    if not _is_json(request) and await request.body():
        first |= {"field": None, "hint": "send JSON, with Content-Type: application/json"}
    where = f"{first['field']}: " if first["field"] else ""
    message = f"{where}{first['message']}"
    if len(details) > 1:
        message += f" (and {len(details) - 1} more)"
    problem = Problem(HTTPStatus.BAD_REQUEST, "VALIDATION_ERROR", message, first["hint"], details)
    return respond(problem, request.scope)


def _is_json(request: Request) -> bool:
    return "json" in request.headers.get("content-type", "")


def _detail(error: Mapping[str, Any]) -> dict[str, Any]:
    """`loc` begins with where the value came from: body, query, path."""
    context = error.get("ctx") or {}
    source, *path = error["loc"]
    if error["type"] == "json_invalid":
        message = f"the body is not JSON: {context['error']} at character {path[0]}"
        return {"field": None, "message": message, "hint": None}
    if "name" in context:
        path.append(context["name"])
    if path[:1] == ["target"] and path[1:2] and path[1] in _TARGET_TYPES:
        del path[1]  # which of the shapes it was held against; nobody wrote it there
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return {
        "field": name.removeprefix(".") or str(source),
        "message": error["msg"],
        "hint": context.get("hint"),
    }
