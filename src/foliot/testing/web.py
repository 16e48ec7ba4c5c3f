"""The API in the test's own process: requests go straight to the application, as a server would
hand them over."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from fastapi import FastAPI
from starlette.types import Message

from foliot.api.app import Parts, create_app
from foliot.core.allow_list import CLOSED, AllowList
from foliot.core.commands import NO_PROGRAMS, Programs
from foliot.runtime.chance import random_name
from foliot.runtime.clock import Clock, SystemClock
from foliot.runtime.envelope import Keyring
from foliot.runtime.health import Check
from foliot.store.database import Database

KEY: Final = "the-key-of-the-operator"


class AlwaysReady:
    async def checks(self) -> Mapping[str, Check]:
        return {}


@dataclass(frozen=True)
class Answer:
    """Names of headers are in small letters; `body` is JSON, or text where it is none."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.body["error"]
        return error

    @property
    def code(self) -> tuple[int, str]:
        return self.status, self.error["code"]


class Client:
    """Speaks for the operator; other headers can be given by request or for all of them."""

    def __init__(self, app: FastAPI, headers: Mapping[str, str] | None = None) -> None:
        self.app = app
        self.headers = {"authorization": f"Bearer {KEY}"} if headers is None else headers

    async def get(self, path: str, **query: object) -> Answer:
        return await self.send("GET", path, query=query)

    async def post(self, path: str, body: object = None, **headers: str) -> Answer:
        return await self.send("POST", path, body, headers=headers)

    async def put(self, path: str, body: object, **headers: str) -> Answer:
        return await self.send("PUT", path, body, headers=headers)

    async def patch(self, path: str, body: object = None, **headers: str) -> Answer:
        return await self.send("PATCH", path, body, headers=headers)

    async def delete(self, path: str, **headers: str) -> Answer:
        return await self.send("DELETE", path, headers=headers)

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """`body` is sent as JSON, or as it is if it is bytes; in names of headers, _ is -."""
        parts = urlsplit(path)
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        told = {"content-type": "application/json"} if raw else {}
        told |= dict(self.headers)
        told |= {name.replace("_", "-").lower(): value for name, value in (headers or {}).items()}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": quote(parts.path).encode(),
            "query_string": (parts.query or urlencode(query or {}, doseq=True)).encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in told.items()],
            "server": ("localhost", 80),
        }
        return await _ask(self.app, scope, raw)


async def _ask(app: FastAPI, scope: dict[str, Any], raw: bytes) -> Answer:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": raw, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent[1:])
    headers = {key.decode().lower(): value.decode() for key, value in sent[0]["headers"]}
    is_json = "json" in headers.get("content-type", "")
    return Answer(sent[0]["status"], headers, json.loads(text) if is_json else text.decode())


def client_of(
    database: Database,
    clock: Clock | None = None,
    callback_allow: AllowList = CLOSED,
    keyring: Keyring | None = None,
    programs: Programs = NO_PROGRAMS,
) -> Client:
    now = clock or SystemClock()
    parts = Parts(
        database,
        AlwaysReady(),
        KEY,
        random_name,
        now,
        callback_allow,
        keyring=keyring,
        programs=programs,
    )
    return Client(create_app(parts))
