"""Is this process alive, and does it get on with its work?

`/livez` depends on nothing. `/readyz` is 200 while every check holds, otherwise 503 with the
reasons in words; `?exclude=instants,callbacks` leaves checks out, for those who decide by it where
requests go. `/metrics` is for Prometheus. A role that has no API answers these on a small port of
its own, one request for each connection, beside its work.
"""

import asyncio
import json
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

ALIVE: Final = {"status": "alive"}
EXCLUDE: Final = "exclude"
PATHS: Final = ("/livez", "/readyz", "/metrics")
# Whoever asks has this long to do so, and to take the answer.
EXCHANGE_SECONDS: Final = 5.0
HEAD_BYTES_MAX: Final = 8192
_JSON: Final = "application/json"


@dataclass(frozen=True)
class Check:
    ok: bool
    detail: str


class Readiness(Protocol):
    async def checks(self) -> Mapping[str, Check]:
        """What readiness depends on, each with its state in words. Never raises, never hangs."""


class Starting:
    """Not ready until there is somebody to ask: `then`."""

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self.then: Readiness | None = None

    async def checks(self) -> Mapping[str, Check]:
        if self.then is not None:
            return await self.then.checks()
        return {"database": Check(ok=False, detail=self._reason)}


def verdict(
    checks: Mapping[str, Check], excluded: Collection[str] = ()
) -> tuple[HTTPStatus, dict[str, Any]]:
    """What `/readyz` answers; an excluded check is shown and does not count."""
    ready = all(check.ok for name, check in checks.items() if name not in excluded)
    status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
    return status, {
        "status": "ready" if ready else "not ready",
        "checks": {name: asdict(check) for name, check in checks.items()},
    }


def names_in(values: Collection[str]) -> frozenset[str]:
    """`a,b` and a name that comes twice are both two names."""
    return frozenset(name.strip() for value in values for name in value.split(","))


@asynccontextmanager
async def health_port(listener: socket.socket, readiness: Readiness) -> AsyncIterator[None]:
    """The port answers while the block runs."""

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(EXCHANGE_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(await _answer(head, readiness))
                    await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, sock=listener, limit=HEAD_BYTES_MAX)
    try:
        yield
    finally:
        server.close()


async def _answer(head: bytes, readiness: Readiness) -> bytes:
    method, target = [*head.decode("latin-1").split(" ", 2), "", ""][:2]
    try:
        parts = urlsplit(target)
    except ValueError:
        return _response(method, HTTPStatus.BAD_REQUEST, _JSON, b"{}")
    if method not in ("GET", "HEAD"):
        return _response(method, HTTPStatus.METHOD_NOT_ALLOWED, _JSON, b"{}")
    match parts.path:
        case "/livez":
            return _response(method, HTTPStatus.OK, _JSON, _json(ALIVE))
        case "/readyz":
            excluded = names_in(parse_qs(parts.query).get(EXCLUDE, ()))
            status, body = verdict(await readiness.checks(), excluded)
            return _response(method, status, _JSON, _json(body))
        case "/metrics":
            return _response(method, HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest())
        case _:
            body = {"error": f"there is nothing here but {', '.join(PATHS)}"}
            return _response(method, HTTPStatus.NOT_FOUND, _JSON, _json(body))


def _json(body: object) -> bytes:
    return json.dumps(body).encode()


def _response(method: str, status: HTTPStatus, kind: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (b"" if method == "HEAD" else body)
