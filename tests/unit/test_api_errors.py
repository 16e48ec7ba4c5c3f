"""Every answer has a request id, and every failure the same envelope."""

import logging
from collections.abc import Mapping

import pytest
from fastapi import FastAPI

from foliot.api.app import Parts, create_app
from foliot.runtime.clock import SystemClock
from foliot.runtime.health import Check
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, StatementFailed
from foliot.testing.web import KEY, Answer, Client


class Always:
    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks

    async def checks(self) -> Mapping[str, Check]:
        return self._checks


GOOD = Check(ok=True, detail="fine")
BAD = Check(ok=False, detail="away")


def app_with(**checks: Check) -> FastAPI:
    nowhere = Database("postgresql://127.0.0.1:1/nowhere")
    return create_app(Parts(nowhere, Always(checks), KEY, lambda: "fresh-id", SystemClock()))


async def ask(app: FastAPI, path: str, *, method: str = "GET", **headers: str) -> Answer:
    return await Client(app).send(method, path, headers=headers)


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


async def test_who_asks_for_problem_json_gets_the_same_as_problem_json() -> None:
    app = app_with()
    plain = await ask(app, "/v1/jobs/x")
    problem = await ask(app, "/v1/jobs/x", accept="application/problem+json, */*;q=0.1")
    assert problem.headers["content-type"] == "application/problem+json"
    assert problem.status == plain.status == 404
    assert problem.body == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": plain.error["message"],
        "code": "JOB_NOT_FOUND",
        "request_id": "fresh-id",
        "details": [],
        "hint": None,
    }


async def test_a_database_that_is_away_is_a_503_that_names_no_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        answer = await ask(app_with(), "/v1/jobs")
    assert answer.code == (503, "SCHEDULER_UNAVAILABLE")
    assert answer.error["message"] == "the database is out of reach; nothing was changed"
    assert answer.headers["retry-after"] == "1"
    assert "127.0.0.1" not in str(answer.body)
    assert "request fresh-id failed: database postgresql://127.0.0.1:1/nowhere" in caplog.text


async def test_a_statement_that_fails_is_our_fault(caplog: pytest.LogCaptureFixture) -> None:
    app = app_with()

    @app.get("/broken")
    async def broken() -> None:
        raise StatementFailed("column secret does not exist", "42703")

    @app.get("/unconfirmed")
    async def unconfirmed() -> None:
        raise CommitUnknown("postgresql://somewhere", "lost")

    answer = await ask(app, "/broken")
    assert answer.code == (500, "INTERNAL_ERROR")
    assert "secret" not in str(answer.body)
    assert "column secret" in caplog.text
    answer = await ask(app, "/unconfirmed")
    assert answer.code == (503, "SCHEDULER_UNAVAILABLE")
    assert answer.error["hint"] == "send it again with the same Idempotency-Key"
    assert "somewhere" not in str(answer.body)


async def test_a_body_that_says_too_little_of_its_size_is_cut_off_all_the_same() -> None:
    client = Client(app_with())
    answer = await client.post("/v1/jobs", b"[" + b" " * 9_000_000 + b"]")
    assert answer.code == (413, "PAYLOAD_TOO_LARGE")
    told = await client.post("/v1/jobs", b"{}", content_length="9000000")
    assert told.code == (413, "PAYLOAD_TOO_LARGE")
    bulk = await client.post("/v1/executions/bulk", b"[" + b" " * 9_000_000 + b"]")
    assert bulk.code == (400, "VALIDATION_ERROR")
