"""Where failures become HTTP: one envelope for all of them, and a request id on every answer.

A caller's own `X-Request-ID` is kept if it is short and plain, so that a trail can cross systems.
"""

import logging
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

REQUEST_ID_HEADER: Final = "X-Request-ID"
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_HINTS: Final = {
    HTTPStatus.NOT_FOUND: "GET /openapi.json lists the paths there are",
    HTTPStatus.METHOD_NOT_ALLOWED: "the Allow header lists the methods this path takes",
}


def envelope(
    status: HTTPStatus, message: str, request_id: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    error: dict[str, object] = {
        "code": "INTERNAL_ERROR" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else status.name,
        "message": message,
        "request_id": request_id,
        "details": [],
        "hint": _HINTS.get(status),
    }
    return JSONResponse({"error": error}, status_code=status, headers=dict(headers or {}))


async def answer_http_exception(request: Request, error: Exception) -> JSONResponse:
    """What the router itself refuses: an unknown path, a method the path does not take."""
    if not isinstance(error, HTTPException):
        raise error
    status = HTTPStatus(error.status_code)
    message = f"{status.phrase}: {request.method} {request.url.path}"
    return envelope(status, message, request.state.request_id, error.headers)


class RequestIds:
    """Gives each request its id and turns a bug into a plain 500; the traceback goes to the log."""

    def __init__(self, app: ASGIApp, new_id: Callable[[], str]) -> None:
        self._app = app
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self._id_of(Headers(scope=scope))
        scope.setdefault("state", {})["request_id"] = request_id
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception:
            log.exception("request %s %s %s failed", request_id, scope["method"], scope["path"])
            if started:
                raise
            message = "something went wrong on our side; the server's log has it under this id"
            response = envelope(HTTPStatus.INTERNAL_SERVER_ERROR, message, request_id)
            await response(scope, receive, send_with_id)

    def _id_of(self, headers: Headers) -> str:
        given = headers.get(REQUEST_ID_HEADER, "")
        return given if _PLAIN_ID.fullmatch(given) else self._new_id()
