"""Every answer has a request id, and every failure the same envelope."""

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.types import Message

from foliot.api.app import create_app
from foliot.api.health import Check


class Always:
    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks

    async def checks(self) -> Mapping[str, Check]:
        return self._checks


GOOD = Check(ok=True, detail="fine")
BAD = Check(ok=False, detail="away")


def app_with(**checks: Check) -> FastAPI:
    return create_app(Always(checks), lambda: "fresh-id")


class Answer:
    def __init__(self, messages: list[Message]) -> None:
        self.status: int = messages[0]["status"]
        self.headers = {key.decode(): value.decode() for key, value in messages[0]["headers"]}
        self.body: Any = json.loads(b"".join(message.get("body", b"") for message in messages[1:]))


async def ask(app: FastAPI, path: str, *, method: str = "GET", **headers: str) -> Answer:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()
        ],
        "server": ("localhost", 80),
    }
    await app(scope, receive, send)
    return Answer(sent)


async def test_ready_is_all_checks_at_once() -> None:
    answer = await ask(app_with(database=GOOD, schema=GOOD), "/readyz")
    assert (answer.status, answer.body["status"]) == (200, "ready")


async def test_one_failed_check_is_enough_not_to_be_ready() -> None:
    answer = await ask(app_with(database=GOOD, schema=BAD), "/readyz")
    assert (answer.status, answer.body["status"]) == (503, "not ready")
    assert answer.body["checks"]["schema"] == {"ok": False, "detail": "away"}


async def test_alive_depends_on_nothing() -> None:
    assert (await ask(app_with(database=BAD), "/livez")).status == 200


@pytest.mark.parametrize("path", ["/livez", "/nothing", "/readyz"])
async def test_every_answer_has_a_request_id(path: str) -> None:
    assert (await ask(app_with(database=BAD), path)).headers["x-request-id"] == "fresh-id"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("trace-7.b:2_c", "trace-7.b:2_c"),
        ("", "fresh-id"),
        ("two words", "fresh-id"),
        ("line\nbreak", "fresh-id"),
        ("x" * 128, "x" * 128),
        ("x" * 129, "fresh-id"),
    ],
)
async def test_a_callers_own_request_id_is_kept_if_it_is_plain(given: str, expected: str) -> None:
    answer = await ask(app_with(), "/nothing", x_request_id=given)
    assert answer.headers["x-request-id"] == expected
    assert answer.body["error"]["request_id"] == expected


async def test_an_unknown_path_is_a_404_in_the_envelope() -> None:
    answer = await ask(app_with(), "/nothing")
    assert answer.status == 404
    assert answer.body == {
        "error": {
            "code": "NOT_FOUND",
            "message": "Not Found: GET /nothing",
            "request_id": "fresh-id",
            "details": [],
            "hint": "GET /openapi.json lists the paths there are",
        }
    }


async def test_a_method_the_path_does_not_take_is_a_405_with_allow() -> None:
    answer = await ask(app_with(), "/livez", method="POST")
    assert answer.status == 405
    assert answer.body["error"]["code"] == "METHOD_NOT_ALLOWED"
    assert answer.headers["allow"] == "GET"


async def test_a_bug_is_a_plain_500_and_a_traceback_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = app_with()

    @app.get("/bug")
    async def bug() -> None:
        raise RuntimeError("password=hunter2")

    with caplog.at_level(logging.ERROR):
        answer = await ask(app, "/bug")
    assert answer.status == 500
    assert answer.body["error"]["code"] == "INTERNAL_ERROR"
    assert answer.headers["x-request-id"] == "fresh-id"
    assert "hunter2" not in str(answer.body)
    assert "request fresh-id GET /bug failed" in caplog.text
    assert "RuntimeError" in caplog.text
