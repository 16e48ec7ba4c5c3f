"""HTTP targets on the whole engine: real processes, a real server on the other side."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from foliot.testing.commands import eventually
from foliot.testing.engine import Engine
from foliot.testing.visitor import Visitor

Headers = dict[str, str]
Answer = tuple[int, Headers, Any]


class Side:
    """The other side: what it was asked, and how it answers."""

    def __init__(self) -> None:
        self.requests: list[tuple[Headers, Any]] = []
        self.answer: Callable[[Headers], Answer] = lambda _: (200, {}, {"ok": True})
        self.url = ""

    def fences(self, execution_id: str) -> list[str]:
        return [
            told["x-fencing-token"]
            for told, _ in self.requests
            if told["x-execution-id"] == execution_id
        ]


@pytest.fixture
def side() -> Iterator[Side]:
    made = Side()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            told = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(told.get("content-length", "0")))
            made.requests.append((told, json.loads(body) if body else None))
            status, headers, answer = made.answer(told)
            sent = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        made.url = f"http://127.0.0.1:{server.server_port}/"
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@contextmanager
def running(url: str, folder: Path) -> Iterator[tuple[Engine, Visitor]]:
    """All roles; the worker has no module."""
    engine = Engine(url, folder)
    allow = {"FOLIOT_CALLBACK_ALLOW": "loopback"}
    with engine.api(**allow), engine.scheduler(), engine.worker(**allow):
        yield engine, engine.visitor


def hook(visitor: Visitor, side: Side, **fields: object) -> dict[str, Any]:
    return visitor.make_job("hook", target={"type": "HTTP", "url": side.url}, **fields)


def test_a_job_calls_its_target_and_keeps_what_it_said(
    side: Side, database_url: str, open_folder: Path
) -> None:
    with running(database_url, open_folder) as (_, visitor):
        execution_id = visitor.enqueue(hook(visitor, side), {"n": 7})
        done = visitor.until(execution_id, "SUCCEEDED")
        assert done["result"] == {"ok": True}
        assert done["response"] == {"http_status": 200, "body_preview": '{"ok": true}'}
        ((told, payload),) = side.requests
        assert payload == {"n": 7}
        assert told["x-execution-id"] == execution_id
        assert told["x-idempotency-key"] == done["idempotency_key"]

        side.answer = lambda told: (200 if told["x-attempt-number"] == "2" else 503, {}, "hm")
        execution_id = visitor.enqueue(hook(visitor, side))
        done = visitor.until(execution_id, "SUCCEEDED")
        assert side.fences(execution_id) == ["1", "2"]
        assert done["attempts"][0]["error"]["http_status"] == 503

        side.answer = lambda _: (404, {}, "no")
        failed = visitor.until(visitor.enqueue(hook(visitor, side)), "FAILED")
        assert failed["error"]["type"] == "HTTP_ERROR"
        said = '404 Not Found: "no"'
        eventually(
            lambda: any(said in line for line in visitor.said(failed["execution_id"])),
            what="the log has what the target said",
        )
        assert failed["dead_letter_id"] == failed["execution_id"]


def test_a_target_takes_it_over_and_tells_the_end_later(
    side: Side, database_url: str, open_folder: Path
) -> None:
    """Also after the worker that called it has left."""
    engine = Engine(database_url, open_folder)
    allow = {"FOLIOT_CALLBACK_ALLOW": "loopback"}
    side.answer = lambda _: (202, {"X-Foliot-Async": "true"}, None)
    with engine.api(**allow), engine.scheduler():
        visitor = engine.visitor
        job = hook(visitor, side)
        with engine.worker(**allow) as worker:
            first, second, third = (visitor.enqueue(job) for _ in range(3))
            eventually(lambda: len(side.requests) == 3, what="all were called")
            worker.send(signal.SIGTERM)
            assert worker.ended() == 0
        for each in (first, second, third):
            assert visitor.execution(each)["status"] == "RUNNING"
        place = f"/executions/{first}"
        answer = visitor.call("POST", f"{place}/progress", {"fence": 1, "percent": 50})
        assert answer["cancel_requested"] is False
        (told,) = visitor.explain(first)["blockers"]
        assert told["code"] == "HANDED_OVER"
        assert told["message"].startswith("its target has taken it over and will tell its end")
        assert told["message"].endswith("attempt 1 of 4, 50 % done")
        assert told["until"] is not None
        done = visitor.call("POST", f"{place}/complete", {"fence": 1, "result": [1]})
        assert (done["status"], done["result"]) == ("SUCCEEDED", [1])

        failure = {"fence": 1, "error": {"message": "no disk"}}
        assert visitor.call("POST", f"/executions/{second}/fail", failure)["status"] == "RETRYING"
        with engine.worker(**allow):
            eventually(lambda: side.fences(second) == ["1", "2"], what="it is called again")
            status, answer, _ = visitor.try_call(
                "POST", f"/executions/{second}/complete", {"fence": 1}
            )
            assert (status, answer["error"]["code"]) == (409, "SUPERSEDED")
            visitor.call("POST", f"/executions/{second}/complete", {"fence": 2})
            assert visitor.execution(third)["status"] == "RUNNING", "nobody rescues it"
        assert visitor.execution(second)["status"] == "SUCCEEDED"


def test_a_dead_host_costs_no_attempt_once_it_is_known_to_be_dead(
    side: Side, database_url: str, open_folder: Path
) -> None:
    side.answer = lambda _: (503, {}, "down")
    with running(database_url, open_folder) as (_, visitor):
        job = hook(visitor, side)
        for _ in range(10):
            visitor.enqueue(job)
        eventually(
            lambda: "WAITING" in {run["status"] for run in visitor.runs(job)},
            what="it is known to be dead",
        )
        held = visitor.enqueue(job)
        visitor.until(held, "WAITING")
        told = visitor.until_told(held, "BREAKER")
        assert f"{side.url.rstrip('/')} does not answer: " in told["message"]
        assert told["until"] is not None
        side.answer = lambda _: (200, {}, "up")
        done = visitor.until(held, "SUCCEEDED")
        assert done["fence"] > done["attempt_number"], "it was claimed without being tried"
        assert len(done["attempts"]) == done["attempt_number"]
