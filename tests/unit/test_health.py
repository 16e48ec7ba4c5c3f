"""A small port that says how a process gets on, whatever it is asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from foliot.runtime.health import Check, Starting, health_port, verdict
from foliot.runtime.listener import listen, url_of

GOOD, BAD = Check(ok=True, detail="fine"), Check(ok=False, detail="late")


class Told:
    def __init__(self, **checks: Check) -> None:
        self._checks = checks

    async def checks(self) -> Mapping[str, Check]:
        return self._checks


@asynccontextmanager
async def port(**checks: Check) -> AsyncIterator[int]:
    listener = listen("127.0.0.1", 0)
    async with health_port(listener, Told(**checks)):
        yield int(url_of(listener).rpartition(":")[2])


async def ask(number: int, request: bytes) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", number)
    writer.write(request)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    head, _, body = answer.decode().partition("\r\n\r\n")
    return int(head.split()[1]) if head else 0, body


async def get(number: int, path: str) -> tuple[int, str]:
    return await ask(number, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


async def test_alive_whatever_is_late() -> None:
    async with port(instants=BAD) as number:
        assert await get(number, "/livez") == (200, '{"status": "alive"}')


async def test_ready_while_every_check_holds() -> None:
    async with port(database=GOOD, instants=BAD) as number:
        status, body = await get(number, "/readyz")
        assert (status, json.loads(body)["status"]) == (503, "not ready")
        assert json.loads(body)["checks"]["instants"] == {"ok": False, "detail": "late"}
        status, body = await get(number, "/readyz?exclude=instants,other")
        assert (status, json.loads(body)["status"]) == (200, "ready")


async def test_metrics_are_those_of_the_process() -> None:
    async with port() as number:
        status, body = await get(number, "/metrics")
    assert status == 200
    assert "# TYPE foliot_loop_passes_total counter" in body


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /elsewhere HTTP/1.1\r\n\r\n", 404),
        (b"POST /livez HTTP/1.1\r\n\r\n", 405),
        (b"\xff\xfe\r\n\r\n", 405),
        (b"GET //[ HTTP/1.1\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nX: " + b"x" * 70_000, 0),
    ],
)
async def test_whatever_is_asked_it_goes_on(request_: bytes, status: int) -> None:
    async with port() as number:
        try:
            assert (await ask(number, request_))[0] == status
        except ConnectionError:
            assert status == 0
        assert (await get(number, "/livez"))[0] == 200


async def test_a_head_has_no_body() -> None:
    async with port() as number:
        assert await ask(number, b"HEAD /livez HTTP/1.1\r\n\r\n") == (200, "")


async def test_it_is_not_ready_before_there_is_somebody_to_ask() -> None:
    starting = Starting("not migrated")
    assert verdict(await starting.checks())[0] == 503
    starting.then = Told(database=GOOD)
    assert verdict(await starting.checks())[0] == 200
