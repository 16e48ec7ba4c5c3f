"""The door before a WSGI application: Flask, Django, Bottle, wsgiref."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from foliot.receiver.calls import Call, Store
from foliot.receiver.door import (
    ASYNC,
    BODY_BYTES_MAX,
    HEADERS,
    WALL_CLOCK,
    Door,
    Now,
    Reply,
    reply_to,
    status_to_keep,
)
from foliot.receiver.memory import MemoryStore


def verify(
    app: WSGIApplication,
    keys: Sequence[str],
    store: Store | None = None,
    *,
    body_bytes_max: int = BODY_BYTES_MAX,
    now: Now = WALL_CLOCK,
) -> WSGIApplication:
    """`app`, for callbacks of Foliot alone. It gets the body as it came."""
    return _Verified(app, Door(keys, body_bytes_max, now), store or MemoryStore())


class _Verified:
    def __init__(self, app: WSGIApplication, door: Door, store: Store) -> None:
        self._app = app
        self._door = door
        self._store = store

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        body = _body(environ, self._door.body_bytes_max)
        if body is None:
            return _answer(start, self._door.too_large())
        # Of a header that is there twice the server has made one, with a comma: it fits nothing.
        found = self._door.read(_headers(environ), body)
        if isinstance(found, Reply):
            return _answer(start, found)
        reply = reply_to(self._store.begin(found, self._door.now()), found)
        if reply is not None:
            return _answer(start, reply)
        environ["wsgi.input"] = BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        return self._ask(found, environ, start)

    def _ask(self, call: Call, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        status: int | None = None

        def note(line: str, headers: list[tuple[str, str]], *rest: Any) -> Any:  # noqa: ANN401
            nonlocal status
            told = {name.lower(): value for name, value in headers}
            status = status_to_keep(int(line.split(" ", 1)[0]), {ASYNC: told.get(ASYNC, "")})
            return start(line, headers, *rest)

        def end(*, well: bool) -> None:
            self._store.end(call, status if well else None, self._door.now())

        try:
            parts = self._app(environ, note)
        except BaseException:
            end(well=False)
            raise
        return _Parts(parts, end)


class _Parts:
    """The answer as the application gives it; at its end the server closes it."""

    def __init__(self, parts: Iterable[bytes], end: Callable[..., None]) -> None:
        self._parts = parts
        self._end = end
        self._well = True

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._parts
        except Exception:
            self._well = False
            raise

    def close(self) -> None:
        try:
            close = getattr(self._parts, "close", None)
            if close is not None:
                close()
        finally:
            self._end(well=self._well)


def _headers(environ: WSGIEnvironment) -> dict[str, str]:
    """Those that count."""
    names = {name: f"HTTP_{name.upper().replace('-', '_')}" for name in HEADERS}
    return {name: str(environ[key]) for name, key in names.items() if key in environ}


def _body(environ: WSGIEnvironment, most: int) -> bytes | None:
    """None if it is too large; no more than that is read."""
    length = str(environ.get("CONTENT_LENGTH") or "")
    if not length:
        size = most + 1 if environ.get("wsgi.input_terminated") else 0
    else:
        size = int(length) if length.isdecimal() else 0
    if length and size > most:
        return None
    body: bytes = environ["wsgi.input"].read(size) if size else b""
    return body if len(body) <= most else None


def _answer(start: StartResponse, reply: Reply) -> list[bytes]:
    start(f"{reply.status.value} {reply.status.phrase}", reply.all_headers())
    return [reply.body]
