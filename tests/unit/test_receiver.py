"""The door before a receiver, the same before ASGI and WSGI: who gets in, and how often."""

# ruff: noqa: ANN401 - requests and answers as two protocols have them

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.signatures import sign, write_key
from foliot.receiver import (
    Call,
    Done,
    Fresh,
    InFlight,
    MemoryStore,
    Stale,
    Store,
    Verdict,
    asgi,
    wsgi,
)
from foliot.runtime.service import run

KEY, NEW_KEY = bytes(range(32)), bytes(range(1, 33))
NOW = 1_800_000_000.0
EXECUTION = "0191f000-0000-8000-8000-000000000001"


@dataclass
class App:
    """The application behind the door: what reached it, and how it answers."""

    bodies: list[bytes] = field(default_factory=list)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    during: Callable[[], None] = lambda: None
    error: Exception | None = None

    def answer(self, body: bytes) -> None:
        self.bodies.append(body)
        self.during()
        if self.error is not None:
            raise self.error

    async def asgi(self, _: Any, receive: Any, send: Any) -> None:
        message = await receive()
        self.answer(message["body"])
        headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"done"})

    def wsgi(self, environ: Any, start: Any) -> Iterable[bytes]:
        self.answer(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        start(f"{self.status} So", list(self.headers.items()))
        return [b"done"]


Answer = tuple[int, dict[str, str], bytes]
Ask = Callable[[Any, list[tuple[str, str]], bytes], Answer]


def ask_asgi(door: Any, headers: list[tuple[str, str]], body: bytes) -> Answer:
    sent: list[Any] = []
    halves = [body[: len(body) // 2], body[len(body) // 2 :]]

    async def receive() -> Any:
        part = halves.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(halves)}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    run(door({"type": "http", "headers": raw}, receive, send))
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], told, b"".join(each["body"] for each in sent[1:])


def ask_wsgi(door: Any, headers: list[tuple[str, str]], body: bytes) -> Answer:
    environ: dict[str, Any] = {"wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body))}
    for name, value in headers:
        key = f"HTTP_{name.upper().replace('-', '_')}"
        environ[key] = f"{environ[key]},{value}" if key in environ else value
    started: list[Any] = []
    parts = door(environ, lambda *told: started.append(told))
    try:
        answer = b"".join(parts)
    finally:
        getattr(parts, "close", lambda: None)()
    status, told = started[0][:2]
    return int(status[:3]), {name.lower(): value for name, value in told}, answer


@dataclass
class Bench:
    """One way of serving, with a clock that is told."""

    kind: str
    app: App = field(default_factory=App)
    now: float = NOW

    def door(self, *keys: bytes, **options: Any) -> Any:
        written = [write_key(key) for key in keys or (KEY,)]
        if self.kind == "asgi":
            return asgi.verify(self.app.asgi, written, now=lambda: self.now, **options)
        return wsgi.verify(self.app.wsgi, written, now=lambda: self.now, **options)

    def ask(self, door: Any, headers: list[tuple[str, str]], body: bytes = b"{}") -> Answer:
        return (ask_asgi if self.kind == "asgi" else ask_wsgi)(door, headers, body)

    def call(self, door: Any, fence: int = 1, body: bytes = b"{}", **changes: Any) -> Answer:
        return self.ask(door, list(headers_of(body, fence, self.now, **changes).items()), body)


def headers_of(body: bytes, fence: int, now: float, **changes: str) -> dict[str, str]:
    """Of a call as Foliot sends it; in names, _ is -."""
    message_id = changes.pop("message_id", EXECUTION)
    headers = sign([KEY], message_id, int(now), body) | {
        "x-execution-id": EXECUTION,
        "x-idempotency-key": message_id,
        "x-fencing-token": str(fence),
    }
    return headers | {name.replace("_", "-"): value for name, value in changes.items()}


@pytest.fixture(params=["asgi", "wsgi"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)


def code(answer: Answer) -> tuple[int, str]:
    return answer[0], json.loads(answer[2])["error"]["code"]


def test_a_signed_call_reaches_the_application_byte_for_byte(bench: Bench) -> None:
    body = b'{ "a" :\t1}\r\n\x00\xff'
    assert bench.call(bench.door(), body=body) == (200, {}, b"done")
    assert bench.app.bodies == [body]


@pytest.mark.parametrize(
    "changes",
    [
        {"webhook_signature": "v1,AAAA"},
        {"webhook_id": EXECUTION[:-1] + "2"},
        {"webhook_timestamp": str(int(NOW) - 1)},
        {"webhook_signature": ""},
    ],
)
def test_what_is_not_signed_as_it_stands_stays_outside(
    bench: Bench, changes: dict[str, Any]
) -> None:
    assert code(bench.call(bench.door(), **changes)) == (401, "UNAUTHENTICATED")
    assert bench.ask(bench.door(), [])[0] == 401
    assert bench.app.bodies == []


def test_a_call_of_another_time_stays_outside(bench: Bench) -> None:
    headers = list(headers_of(b"{}", 1, NOW).items())
    bench.now += 301
    status, _, words = bench.ask(bench.door(), headers)
    assert status == 401
    assert b"301 s old" in words


def test_while_a_key_is_replaced_both_are_known(bench: Bench) -> None:
    assert bench.call(bench.door(NEW_KEY, KEY))[0] == 200
    assert bench.call(bench.door(NEW_KEY))[0] == 401


@pytest.mark.parametrize(
    "changes",
    [
        {"x_execution_id": ""},
        {"x_execution_id": "0191f000"},
        {"x_execution_id": "another"},
        {"x_fencing_token": ""},
        {"x_fencing_token": "-1"},
        {"x_fencing_token": "1e5"},
        {"x_fencing_token": "9" * 40},
        {"x_idempotency_key": ""},
        {"x_idempotency_key": "x" * 1001},
    ],
)
def test_what_is_said_beside_the_signature_must_be_about_the_same(
    bench: Bench, changes: dict[str, Any]
) -> None:
    assert code(bench.call(bench.door(), **changes)) == (400, "VALIDATION_ERROR")
    assert bench.app.bodies == []


@pytest.mark.parametrize("name", ["webhook-id", "x-fencing-token", "x-idempotency-key"])
def test_a_header_that_counts_is_there_once(bench: Bench, name: str) -> None:
    headers = [*headers_of(b"{}", 1, NOW).items(), (name, "2")]
    status = bench.ask(bench.door(), headers)[0]
    # A server that joins the two has made a key that nobody ever sent, and of the rest nonsense.
    assert status in (400, 401) or (bench.kind, name) == ("wsgi", "x-idempotency-key")


def test_an_attempt_that_was_replaced_is_refused(bench: Bench) -> None:
    door = bench.door()
    bench.app.status = 500
    assert bench.call(door, 2)[0] == 500
    assert code(bench.call(door, 1)) == (409, "SUPERSEDED")
    assert bench.call(door, 2)[0] == 500
    assert bench.call(door, 3)[0] == 500
    assert len(bench.app.bodies) == 3


def test_what_was_done_is_not_done_again(bench: Bench) -> None:
    door = bench.door()
    bench.app.status = 201
    assert bench.call(door, 1)[0] == 201
    assert bench.call(door, 2) == (201, {"content-length": "0"}, b"")
    assert len(bench.app.bodies) == 1
    other = bench.call(door, 2, message_id=f"{EXECUTION}-ended")
    assert other[0] == 201
    assert len(bench.app.bodies) == 2, "the end of an execution is another message"


def test_a_captured_call_under_another_key_is_not_done_again(bench: Bench) -> None:
    """The idempotency key is not signed, the id is."""
    door = bench.door()
    bench.call(door)
    bench.call(door, x_idempotency_key="forged")
    assert len(bench.app.bodies) == 1


def test_two_executions_with_one_key_are_one_piece_of_work(bench: Bench) -> None:
    door, other = bench.door(), "0191f000-0000-8000-8000-000000000002"
    bench.call(door, x_idempotency_key="order-7")
    again: dict[str, Any] = {"x_idempotency_key": "order-7", "x_execution_id": other}
    assert bench.call(door, message_id=other, **again)[0] == 200
    assert len(bench.app.bodies) == 1


@pytest.mark.parametrize(
    ("status", "headers"), [(500, {}), (404, {}), (302, {}), (202, {"X-Foliot-Async": "true"})]
)
def test_what_was_not_done_may_come_again(
    bench: Bench, status: int, headers: dict[str, str]
) -> None:
    door = bench.door()
    bench.app.status, bench.app.headers = status, headers
    bench.call(door, 1)
    bench.call(door, 2)
    assert len(bench.app.bodies) == 2


def test_an_application_that_breaks_has_done_nothing(bench: Bench) -> None:
    door = bench.door()
    bench.app.error = RuntimeError("no")
    with pytest.raises(RuntimeError):
        bench.call(door)
    bench.app.error = None
    assert bench.call(door)[0] == 200


def test_the_same_work_is_not_done_twice_at_once(bench: Bench) -> None:
    store = MemoryStore()
    door, other = bench.door(store=store), Bench("wsgi")
    second = other.door(store=store)
    found: list[Answer] = []
    bench.app.during = lambda: found.append(other.call(second, 2))
    bench.call(door, 1)
    assert code(found[0]) == (429, "IDEMPOTENCY_IN_FLIGHT")
    assert found[0][1]["retry-after"] == "5"
    assert other.app.bodies == []


def test_a_body_that_is_too_large_is_refused(bench: Bench) -> None:
    door = bench.door(body_bytes_max=10)
    assert bench.call(door, body=b"x" * 10)[0] == 200
    assert code(bench.call(door, body=b"x" * 11)) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize("keys", [[], "whsec_x", ["secret"], [""]])
@pytest.mark.parametrize("door", [asgi.verify, wsgi.verify])
def test_a_door_without_a_key_cannot_be_made(door: Any, keys: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        door(None, keys)
    assert (refused.value.field or "").startswith("keys")


def test_a_store_for_asgi_may_have_to_wait() -> None:
    class Slow:
        def __init__(self) -> None:
            self.inner: Store = MemoryStore()

        async def begin(self, call: Call, now_seconds: float) -> Verdict:
            return self.inner.begin(call, now_seconds)

        async def end(self, call: Call, status: int | None, now_seconds: float) -> None:
            self.inner.end(call, status, now_seconds)

    bench = Bench("asgi")
    door = bench.door(store=Slow())
    assert [bench.call(door)[0] for _ in range(3)] == [200, 200, 200]
    assert len(bench.app.bodies) == 1


def test_websockets_are_not_for_strangers() -> None:
    app, sent = App(), []

    async def send(message: Any) -> None:
        sent.append(message)

    door: Any = asgi.verify(app.asgi, [write_key(KEY)])
    run(door({"type": "websocket"}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def a_call(key: str, fence: int = 1) -> Call:
    return Call((key,), f"execution of {key}", fence)


def test_memory_is_bounded_and_ends() -> None:
    store = MemoryStore(keep_seconds=100, entries_max=3)
    for n in range(5):
        assert store.begin(a_call(f"k{n}"), NOW + n) == Fresh()
        store.end(a_call(f"k{n}"), 200, NOW + n)
    assert store.begin(a_call("k4"), NOW + 5) == Done(200)
    assert store.begin(a_call("k0"), NOW + 5) == Fresh()
    assert store.begin(a_call("k0"), NOW + 6) == InFlight()
    assert store.begin(a_call("k4", 0), NOW + 6) == Stale(1)
    assert store.begin(a_call("k4"), NOW + 200) == Fresh()
