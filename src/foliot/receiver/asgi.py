"""The door before an ASGI application: FastAPI, Starlette, Quart, Django."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from http import HTTPStatus
from typing import Any

from foliot.receiver.calls import AsyncStore, Call, Store, Verdict
from foliot.receiver.door import (
    ASYNC,
    BODY_BYTES_MAX,
    HEADERS,
    WALL_CLOCK,
    Door,
    Now,
    Reply,
    refusal,
    reply_to,
    status_to_keep,
)
from foliot.receiver.memory import MemoryStore

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def verify(
    app: Application,
    keys: Sequence[str],
    store: Store | AsyncStore | None = None,
    *,
    body_bytes_max: int = BODY_BYTES_MAX,
    now: Now = WALL_CLOCK,
) -> Application:
    """`app`, for callbacks of Foliot alone. It gets the body as it came."""
    return _Verified(app, Door(keys, body_bytes_max, now), store or MemoryStore())


class _Verified:
    def __init__(self, app: Application, door: Door, store: Store | AsyncStore) -> None:
        self._app = app
        self._door = door
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope["headers"])
        body = await _body(receive, self._door.body_bytes_max)
        if isinstance(headers, Reply):
            await _answer(send, headers)
            return
        if body is None:
            await _answer(send, self._door.too_large())
            return
        call = self._door.read(headers, body)
        if isinstance(call, Reply):
            await _answer(send, call)
            return
        reply = reply_to(await self._begin(call), call)
        if reply is not None:
            await _answer(send, reply)
            return
        await self._ask(call, scope, _Again(body, receive), send)

    async def _ask(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        answered: dict[str, int | None] = {"status": None}

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = [(name, value) for name, value in message.get("headers", ())]
                asynchronous = {ASYNC: _value(told, ASYNC)}
                answered["status"] = status_to_keep(message["status"], asynchronous)
            await send(message)

        status = None
        try:
            await self._app(scope, receive, note)
            status = answered["status"]
        finally:
            await self._end(call, status)

    async def _begin(self, call: Call) -> Verdict:
        found = self._store.begin(call, self._door.now())
        return await found if inspect.isawaitable(found) else found

    async def _end(self, call: Call, status: int | None) -> None:
        ended = self._store.end(call, status, self._door.now())
        if inspect.isawaitable(ended):
            await ended


class _Again:
    """The body once more, in one piece; then whatever the server says."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str] | Reply:
    """Those that count; each once."""
    found: dict[str, str] = {}
    for name, value in raw:
        key = name.decode("latin-1").lower()
        if key in HEADERS:
            if key in found:
                return refusal(HTTPStatus.BAD_REQUEST, "VALIDATION_ERROR", f"{key} is there twice")
            found[key] = value.decode("latin-1")
    return found


def _value(raw: Iterable[tuple[bytes, bytes]], wanted: str) -> str:
    return next((v.decode("latin-1") for n, v in raw if n.decode("latin-1").lower() == wanted), "")


async def _body(receive: Receive, most: int) -> bytes | None:
    """None if it is too large; no more than that is kept of it."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return b""  # who asked has gone
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            return None
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)


async def _answer(send: Send, reply: Reply) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in reply.all_headers()]
    await send({"type": "http.response.start", "status": int(reply.status), "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
