"""The first thing that happens to a request: it gets an id, is counted, and is kept to a size.

A caller's own `X-Request-ID` is kept if it is short and plain, so that a trail can cross systems. A
bug becomes a plain 500; the traceback goes to the log.
"""

import logging
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foliot.api.errors import BUG, Problem, respond
from foliot.runtime.metrics import API_DURATION, API_REQUESTS

log = logging.getLogger(__name__)

REQUEST_ID_HEADER: Final = "X-Request-ID"
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")

# A payload of a megabyte, however it is escaped; and ten thousand small ones.
BODY_BYTES_MAX: Final = 8 * 1024 * 1024
BULK_BYTES_MAX: Final = 64 * 1024 * 1024


class RequestIds:
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
                _count(scope, message["status"])
            await send(message)

        try:
            with API_DURATION.time():
                await self._app(scope, receive, send_with_id)
        except Exception:
            log.exception("request %s %s %s failed", request_id, scope["method"], scope["path"])
            if started:
                raise
            await respond(BUG, scope)(scope, receive, send_with_id)

    def _id_of(self, headers: Headers) -> str:
        given = headers.get(REQUEST_ID_HEADER, "")
        return given if _PLAIN_ID.fullmatch(given) else self._new_id()


def _count(scope: Scope, status: int) -> None:
    """By the route's pattern: a path may be anything, and has an id in it."""
    method = scope["method"] if scope["method"] in METHODS else "other"
    pattern = getattr(scope.get("route"), "path", "none")
    API_REQUESTS.labels(method, pattern, str(int(status))).inc()


class BodyLimit:
    """No more of a body is read than could be kept."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        left = BULK_BYTES_MAX if scope["path"].endswith("/bulk") else BODY_BYTES_MAX
        words = f"the body is larger than {left} bytes"
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > left:
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            problem = Problem(status, "PAYLOAD_TOO_LARGE", words)
            await respond(problem, scope)(scope, receive, send)
            return

        async def receive_within_limit() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, words)
            return message

        await self._app(scope, receive_within_limit, send)
