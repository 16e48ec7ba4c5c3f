"""Whatever a host does, a call to it is bounded in time, in memory and in slots."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import repeat
from uuid import UUID

import pytest

from foliot.core.breaker import FAILURES_MIN, PAUSE_SECONDS_MIN
from foliot.core.hosts import Address
from foliot.core.model import ErrorType, Failure
from foliot.core.retry import is_retryable
from foliot.testing.callbacks import a_call, http_runner
from foliot.testing.clock import ManualClock
from foliot.testing.handlers import Heard
from foliot.testing.receiver import Behaviour, Talk, receiver
from foliot.worker.http import runner as runner_module
from foliot.worker.http.runner import HttpRunner
from foliot.worker.tasks import Cancelled, Ended, Failed, Held, Succeeded

Raw = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(behave: Raw) -> AsyncIterator[int]:
    """The port of a server that does not even read a request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            await behave(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def call(behave: Behaviour, *, timeout_seconds: float = 5.0) -> Ended:
    async with receiver(behave) as there, http_runner() as runner, asyncio.timeout(10):
        task = a_call(there.url, {"a": 1}, timeout_seconds=timeout_seconds)
        return await runner.run(task, Heard())


async def failure(behave: Behaviour, *, timeout_seconds: float = 5.0) -> Failure:
    ended = await call(behave, timeout_seconds=timeout_seconds)
    assert isinstance(ended, Failed)
    assert is_retryable(ended.failure)
    return ended.failure


async def hang(talk: Talk) -> None:
    await talk.reader.read()


async def drip_head(talk: Talk) -> None:
    await talk.send(b"HTTP/1.1 200 OK\r\n")
    for byte in repeat(b"x"):
        await talk.send(byte)
        await asyncio.sleep(0.02)


async def drip_body(talk: Talk) -> None:
    await talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    for byte in repeat(b"x"):
        await talk.send(byte)
        await asyncio.sleep(0.02)


async def say_go_on(talk: Talk) -> None:
    for line in repeat(b"HTTP/1.1 100 Continue\r\n\r\n"):
        await talk.send(line)
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("behave", [hang, drip_head, drip_body, say_go_on])
async def test_a_host_that_takes_its_time_gets_no_more_than_the_timeout(
    behave: Behaviour,
) -> None:
    began = asyncio.get_running_loop().time()
    found = await failure(behave, timeout_seconds=0.3)
    assert found.type is ErrorType.TIMEOUT
    assert asyncio.get_running_loop().time() - began < 2


async def test_what_had_come_before_the_time_was_over_is_shown() -> None:
    ended = await call(drip_body, timeout_seconds=0.3)
    assert isinstance(ended, Failed)
    assert ended.response["http_status"] == 200
    assert ended.response["body_preview"].startswith("x")


async def test_a_status_that_says_no_counts_even_if_the_rest_never_comes() -> None:
    async def refuse(talk: Talk) -> None:
        await talk.send(b"HTTP/1.1 404 Not Found\r\ncontent-length: 1000\r\n\r\n")
        await talk.reader.read()

    ended = await call(refuse, timeout_seconds=0.3)
    assert isinstance(ended, Failed)
    assert ended.failure.http_status == 404


class Flood:
    """Sends for as long as anybody takes it, and counts."""

    def __init__(self, head: bytes, more: bytes) -> None:
        self._head = head
        self._more = more
        self.sent = 0
        self.over = asyncio.Event()

    async def __call__(self, talk: Talk) -> None:
        try:
            await talk.send(self._head)
            while self.sent < 1 << 30:
                await talk.send(self._more)
                self.sent += len(self._more)
        finally:
            self.over.set()


BODY = b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
JSON_BODY = BODY.replace(b"OK\r\n", b"OK\r\ncontent-type: application/json\r\n")


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (BODY, b"x" * 65536),
        (JSON_BODY, b" " * 65536),
        (CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n"),
    ],
)
async def test_of_a_body_without_end_only_the_beginning_is_read(head: bytes, more: bytes) -> None:
    flood = Flood(head, more)
    ended = await call(flood)
    assert isinstance(ended, Succeeded), "the status had come"
    assert len(ended.response["body_preview"]) == 4096
    async with asyncio.timeout(2):
        await flood.over.wait()
    assert flood.sent < 16 * 1024 * 1024, "what fits into the buffers in between"


@pytest.mark.parametrize(
    "more",
    [b"x-more: " + b"x" * 1000 + b"\r\n", b"x" * 65536],
    ids=["many headers", "one long one"],
)
async def test_headers_without_end_are_no_answer(more: bytes) -> None:
    flood = Flood(b"HTTP/1.1 200 OK\r\n", more)
    ended = await call(flood)
    assert isinstance(ended, Failed)
    assert (ended.failure.type, ended.failure.http_status) == (ErrorType.HTTP_ERROR, None)
    async with asyncio.timeout(2):
        await flood.over.wait()
    assert flood.sent < 16 * 1024 * 1024


async def test_what_is_not_http_is_no_answer() -> None:
    async def chatter(talk: Talk) -> None:
        await talk.send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")

    found = await failure(chatter)
    assert (found.type, found.http_status) == (ErrorType.HTTP_ERROR, None)


def reset(writer: asyncio.StreamWriter) -> None:
    """Without a goodbye."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def test_a_connection_that_breaks_is_tried_again() -> None:
    async def after_nothing(talk: Talk) -> None:
        reset(talk.writer)

    async def within_the_body(talk: Talk) -> None:
        await talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        reset(talk.writer)

    for behave in (after_nothing, within_the_body):
        found = await failure(behave)
        assert (found.type, found.detail) == (ErrorType.CONNECTION, "RESET")


async def test_a_reset_after_the_whole_answer_changes_nothing() -> None:
    async def hasty(talk: Talk) -> None:
        await talk.answer(body=b"done")
        await asyncio.sleep(0.05)
        reset(talk.writer)

    ended = await call(hasty)
    assert isinstance(ended, Succeeded)
    assert ended.response["body_preview"] == "done"


async def test_a_redirect_to_itself_is_asked_once() -> None:
    asked = 0

    async def round_and_round(talk: Talk) -> None:
        nonlocal asked
        asked += 1
        await talk.answer("302 Found", location="/")

    ended = await call(round_and_round)
    assert isinstance(ended, Failed)
    assert not is_retryable(ended.failure)
    assert asked == 1


async def one(runner: HttpRunner, url: str, timeout_seconds: float = 5.0) -> Failure:
    ended = await runner.run(a_call(url, timeout_seconds=timeout_seconds), Heard())
    assert isinstance(ended, Failed)
    return ended.failure


async def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with http_runner() as runner:
            found = await one(runner, f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert (found.type, found.detail) == (ErrorType.CONNECTION, "REFUSED")
    assert "ECONNREFUSED" in found.message


async def test_a_name_that_nobody_knows() -> None:
    async def lookup(_: str) -> list[Address]:
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    async with http_runner(lookup=lookup) as runner:
        found = await one(runner, "https://nowhere.example.com/path?secret")
    assert (found.type, found.detail) == (ErrorType.CONNECTION, "DNS")
    assert "secret" not in found.message


async def test_a_host_that_talks_nonsense_instead_of_tls() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"\x00" * 5000)
        await writer.drain()

    async with raw_server(nonsense) as port, http_runner() as runner, asyncio.timeout(10):
        found = await one(runner, f"https://127.0.0.1:{port}")
    assert (found.type, found.detail) == (ErrorType.CONNECTION, "TLS")


async def test_a_host_that_never_agrees_on_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async def quiet(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    monkeypatch.setattr(runner_module, "CONNECT_SECONDS", 0.2)
    async with raw_server(quiet) as port, http_runner() as runner, asyncio.timeout(10):
        found = await one(runner, f"https://127.0.0.1:{port}", timeout_seconds=60)
    assert found.type is ErrorType.TIMEOUT


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://127.0.0.1:1/\r\nX: y", {}),
        ("ftp://example.com/", {}),
        ("http://169.254.169.254/latest", {}),
        ("http://example.com/", {"X-A": "1\r\nX-B: 2"}),
        ("http://example.com/", {"Content-Length": "5"}),
    ],
)
async def test_what_must_not_be_sent_is_refused_for_good(url: str, headers: dict[str, str]) -> None:
    async with http_runner() as runner:
        ended = await runner.run(a_call(url, headers=headers), heard := Heard())
    assert isinstance(ended, Failed)
    assert ended.failure.type is ErrorType.TARGET_REFUSED
    assert not is_retryable(ended.failure)
    assert heard.starts == 0


async def test_a_host_that_does_not_answer_is_left_alone_for_a_while() -> None:
    clock = ManualClock()

    async def broken(talk: Talk) -> None:
        await talk.answer("503 Service Unavailable")

    async with receiver(broken) as there, http_runner(clock=clock) as runner:
        for _ in range(FAILURES_MIN):
            assert isinstance(await runner.run(a_call(there.url), Heard()), Failed)
        held = await runner.run(a_call(there.url), heard := Heard())
        assert isinstance(held, Held)
        assert held.seconds == PAUSE_SECONDS_MIN
        assert "127.0.0.1" in held.reason
        assert f"{FAILURES_MIN} calls have failed" in held.reason
        assert (heard.starts, len(there.requests)) == (0, FAILURES_MIN)
        other = await runner.run(a_call(there.url, tenant_id=UUID(int=2)), Heard())
        assert isinstance(other, Failed), "what one tenant does there is not another's outage"

        clock.seconds += PAUSE_SECONDS_MIN
        assert isinstance(await runner.run(a_call(there.url), Heard()), Failed)
        held = await runner.run(a_call(there.url), Heard())
        assert isinstance(held, Held)
        assert held.seconds == 2 * PAUSE_SECONDS_MIN

        clock.seconds += 2 * PAUSE_SECONDS_MIN
        there.behave = answer_well
        for _ in range(3):
            assert isinstance(await runner.run(a_call(there.url), Heard()), Succeeded)


async def test_a_host_that_hangs_is_left_alone_too() -> None:
    async with receiver(hang) as there, http_runner() as runner:
        calls = [a_call(there.url, timeout_seconds=0.05) for _ in range(FAILURES_MIN)]
        for ended in await asyncio.gather(*(runner.run(each, Heard()) for each in calls)):
            assert isinstance(ended, Failed)
        assert isinstance(await runner.run(a_call(there.url), Heard()), Held)


async def test_who_waits_for_a_place_when_the_host_fails_does_not_go_out() -> None:
    may_fail = asyncio.Event()

    async def broken(talk: Talk) -> None:
        if len(there.requests) == FAILURES_MIN:
            await may_fail.wait()
        await talk.answer("503 Service Unavailable")

    async with receiver(broken) as there, http_runner(per_host=1) as runner:
        loop = asyncio.get_running_loop()
        for _ in range(FAILURES_MIN - 1):
            await runner.run(a_call(there.url), Heard())
        last = loop.create_task(runner.run(a_call(there.url), Heard()))
        await there.until(FAILURES_MIN)
        waiting = loop.create_task(runner.run(a_call(there.url), heard := Heard()))
        await asyncio.sleep(0)
        may_fail.set()
        assert isinstance(await last, Failed)
        held = await waiting
        assert isinstance(held, Held)
        assert "does not answer" in held.reason
        assert (heard.starts, len(there.requests)) == (0, FAILURES_MIN)


async def answer_well(talk: Talk) -> None:
    await talk.answer()


async def test_a_probe_that_is_cancelled_is_not_waited_for() -> None:
    clock = ManualClock()

    async def broken(talk: Talk) -> None:
        await talk.answer("503 Service Unavailable")

    async with receiver(broken) as there, http_runner(clock=clock) as runner:
        for _ in range(FAILURES_MIN):
            await runner.run(a_call(there.url), Heard())
        clock.seconds += PAUSE_SECONDS_MIN
        there.behave = hang
        probe = a_call(there.url)
        probing = asyncio.get_running_loop().create_task(runner.run(probe, Heard()))
        await there.until(FAILURES_MIN + 1)
        assert isinstance(await runner.run(a_call(there.url), Heard()), Held)
        runner.cancel(probe.execution_id, "asked")
        assert await probing == Cancelled("asked")
        there.behave = answer_well
        assert isinstance(await runner.run(a_call(there.url), Heard()), Succeeded)


async def test_a_worker_without_sockets_blames_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object, **__: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    async with receiver() as there, http_runner() as runner:
        monkeypatch.setattr(socket, "socket", none_left)
        ended = await runner.run(a_call(there.url), Heard())
        monkeypatch.undo()
        assert isinstance(ended, Held)
        assert isinstance(await runner.run(a_call(there.url), Heard()), Succeeded)
