"""Completion callbacks of the whole engine: real workers, a receiver behind the shipped door."""

import importlib.util
import json
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from socketserver import ThreadingMixIn
from threading import Event, Thread
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest

from foliot.receiver.wsgi import verify
from foliot.runtime.envelope import new_key_line
from foliot.testing.commands import eventually
from foliot.testing.database import sql
from foliot.testing.engine import Engine
from foliot.testing.visitor import Visitor

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "receiver.py"
ROWS = sql("select claim_number, attempt_number, delivered_at from foliot.deliveries")
# As time would: the lease of who is gone runs out.
LEASES_END = sql(
    "with gone as (update foliot.deliveries set next_attempt_at = clock_timestamp(),"
    " leased_until = clock_timestamp() where delivered_at is null returning 1) select * from gone"
)


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


class Threads(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Whoever called has gone."""


class Side:
    """The other side: `knocks` reached its door, `calls` its application, which may be held up."""

    def __init__(self) -> None:
        self.knocks: list[dict[str, str]] = []
        self.calls: list[tuple[str, Any]] = []
        self.statuses: list[str] = []
        self.go = Event()
        self.go.set()
        self.url = ""
        self.door: WSGIApplication = self.answer

    def knock(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        names = ("WEBHOOK_ID", "WEBHOOK_SIGNATURE", "X_ATTEMPT_NUMBER", "X_EXECUTION_ID")
        self.knocks.append({name: environ.get(f"HTTP_{name}", "") for name in names})

        def note(status: str, *rest: Any) -> Any:  # noqa: ANN401 - as the server has it
            self.statuses.append(status)
            return start(status, *rest)

        return self.door(environ, note)

    def answer(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"] or 0))
        self.calls.append((environ["PATH_INFO"], json.loads(body) if body else None))
        self.go.wait(30)
        start("200 OK", [("Content-Type", "application/json")])
        return [b'{"done": true}']


@pytest.fixture
def side() -> Iterator[Side]:
    made = Side()
    with make_server("127.0.0.1", 0, made.knock, Threads, Quiet) as server:
        made.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield made
        made.go.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def environ() -> dict[str, str]:
    return {"FOLIOT_CALLBACK_ALLOW": "loopback", "FOLIOT_SECRET_KEYS": new_key_line()}


def hook(visitor: Visitor, side: Side, **fields: object) -> dict[str, Any]:
    target = {"type": "HTTP", "url": f"{side.url}/work"}
    return visitor.make_job("hook", target=target, callback_url=f"{side.url}/ended", **fields)


def delivery(visitor: Visitor, execution_id: str) -> dict[str, Any]:
    items = visitor.call("GET", f"/executions/{execution_id}/deliveries")["items"]
    return dict(items[0]) if items else {"status": None}


def until_delivered(visitor: Visitor, execution_id: str) -> dict[str, Any]:
    eventually(
        lambda: delivery(visitor, execution_id)["status"] == "DELIVERED", what="it is delivered"
    )
    return delivery(visitor, execution_id)


def test_target_and_receiver_both_get_what_the_door_lets_in(
    side: Side, database_url: str, open_folder: Path, environ: dict[str, str]
) -> None:
    engine = Engine(database_url, open_folder)
    with engine.api(**environ), engine.scheduler(), engine.worker(**environ):
        visitor = engine.visitor
        key = visitor.call("POST", "/signing-keys/rotate")["key"]
        side.door = verify(side.answer, [key])
        execution_id = visitor.enqueue(hook(visitor, side), {"n": 7})
        done = visitor.until(execution_id, "SUCCEEDED")
        assert done["result"] == {"done": True}
        told = until_delivered(visitor, execution_id)
        assert told["attempts"][0]["http_status"] == 200
        (work, payload), (ended, message) = side.calls
        assert (work, payload, ended) == ("/work", {"n": 7}, "/ended")
        assert message["type"] == "execution.succeeded"
        assert message["data"] == visitor.execution(execution_id)
        ids = [each["WEBHOOK_ID"] for each in side.knocks]
        assert ids == [execution_id, f"{execution_id}-ended"]

        # A new key is in use within seconds, and the receiver that knows only the old one goes on.
        visitor.call("POST", "/signing-keys/rotate")
        eventually(
            lambda: (
                visitor.enqueue(hook(visitor, side))
                and len(side.knocks[-1]["WEBHOOK_SIGNATURE"].split()) == 2
            ),
            what="both sign",
        )
        assert set(side.statuses) == {"200 OK"}

        side.door = verify(side.answer, ["whsec_" + "A" * 32])
        failed = visitor.until(visitor.enqueue(hook(visitor, side)), "FAILED")
        assert failed["error"]["http_status"] == 401


def test_a_worker_that_is_killed_while_it_delivers_loses_nothing(
    side: Side, database_url: str, open_folder: Path, environ: dict[str, str]
) -> None:
    engine = Engine(database_url, open_folder)
    with engine.api(**environ), engine.scheduler():
        visitor = engine.visitor
        key = visitor.call("POST", "/signing-keys/rotate")["key"]
        side.door = verify(side.answer, [key])
        target = {"type": "HANDLER", "name": "nobody"}
        job = visitor.make_job("x", target=target, callback_url=f"{side.url}/ended")
        with engine.worker(**environ) as first:
            side.go.clear()
            execution_id = visitor.enqueue(job)
            visitor.call("POST", f"/executions/{execution_id}/cancel")
            eventually(lambda: len(side.calls) == 1, what="the receiver is at work on it")
            first.send(signal.SIGKILL)
            first.ended()
        side.go.set()
        eventually(lambda: side.statuses == ["200 OK"], what="it is done, and nobody hears of it")
        (row,) = engine.ask(ROWS)
        assert (row["claim_number"], row["attempt_number"], row["delivered_at"]) == (1, 0, None)
        assert len(engine.ask(LEASES_END)) == 1
        with engine.worker(**environ):
            until_delivered(visitor, execution_id)
        (row,) = engine.ask(ROWS)
        assert (row["claim_number"], row["attempt_number"]) == (2, 1)
    first_id, second_id = (each["WEBHOOK_ID"] for each in side.knocks)
    assert first_id == second_id == f"{execution_id}-ended"
    assert side.statuses == ["200 OK", "200 OK"]
    ((path, message),) = side.calls
    assert (path, message["type"]) == ("/ended", "execution.cancelled")


def test_callbacks_without_keys_are_unsigned_and_the_worker_says_so(
    side: Side, database_url: str, open_folder: Path
) -> None:
    engine = Engine(database_url, open_folder)
    allow = {"FOLIOT_CALLBACK_ALLOW": "loopback", "FOLIOT_DATA_DIR": str(open_folder)}
    with engine.api(**allow), engine.scheduler(), engine.worker(**allow) as worker:
        visitor = engine.visitor
        execution_id = visitor.enqueue(hook(visitor, side))
        worker.line_with("callbacks are sent unsigned: set FOLIOT_SECRET_KEYS")
        until_delivered(visitor, execution_id)
    assert [each["WEBHOOK_SIGNATURE"] for each in side.knocks] == ["", ""]


def test_the_example_receives(
    side: Side,
    database_url: str,
    open_folder: Path,
    environ: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    spec = importlib.util.spec_from_file_location("receiver_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    engine = Engine(database_url, open_folder)
    with engine.api(**environ), engine.scheduler(), engine.worker(**environ):
        visitor = engine.visitor
        key = visitor.call("POST", "/signing-keys/rotate")["key"]
        side.door = verify(example.receive, [key])
        execution_id = visitor.enqueue(hook(visitor, side), {"n": 7})
        until_delivered(visitor, execution_id)
    said = [record.getMessage() for record in caplog.records]
    assert f"work {execution_id} {{'n': 7}}" in said
    assert f"execution.succeeded {execution_id} {{'done': True}}" in said
