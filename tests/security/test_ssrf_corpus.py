"""No callback reaches an inner address: not one of the list is called, and no packet leaves for it.

The interpreter itself reports every attempt to connect and every look-up of a name, so that a way
around our own code would be seen too. A server listens on loopback and must not hear a thing.
"""

import asyncio
import re
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from foliot.core.addresses import DENIED_IPV4, DENIED_IPV6, METADATA
from foliot.core.allow_list import CLOSED
from foliot.core.errors import InvalidInput
from foliot.core.hosts import Address
from foliot.core.urls import check_url, literal_refusal
from foliot.worker.http.guard import Guard, TargetRefused

LINES = (Path(__file__).parent / "refused_urls.txt").read_text(encoding="utf-8").split("\n")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}
URLS = [line for line in LINES if line and not line.startswith("# ")]
NAME = "callbacks.example"
PUBLIC = IPv4Address("93.184.216.34")
ENDS = [
    IPv4Address(end) if isinstance(end, IPv4Address) else IPv6Address(end)
    for table in (DENIED_IPV4, DENIED_IPV6)
    for network, _ in table
    for end in (network.network_address, network.broadcast_address)
]
ANSWERS = sorted({*ENDS, *METADATA}, key=lambda one: (one.version, int(one)))

# What the interpreter did since it was last emptied. A hook cannot be taken out again, so it only
# writes while somebody looks.
_watch: list[list[tuple[str, object]]] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _watch and event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        place = arguments[1] if event == "socket.connect" else arguments[0]
        if not isinstance(place, str) or not place.startswith("/"):
            _watch[-1].append((event, place))


sys.addaudithook(_hear)


@pytest.fixture
def seen() -> Iterator[list[tuple[str, object]]]:
    _watch.append([])
    yield _watch[-1]
    _watch.pop()


class Listener:
    """On loopback; counts who comes."""

    def __init__(self) -> None:
        self.visits = 0
        self.port = 0

    async def _meet(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits += 1
        writer.close()

    async def open(self) -> asyncio.Server:
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        return await asyncio.start_server(self._meet, sock=listening)


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    listener = Listener()
    server = await listener.open()
    yield listener
    server.close()
    await server.wait_closed()


def decoded(line: str, port: int) -> str:
    text = re.sub(
        r"\\(?:u([0-9a-f]{4})|([nrt0\\]))",
        lambda found: chr(int(found[1], 16)) if found[1] else ESCAPES[found[2]],
        line,
    )
    return text.replace("{port}", str(port))


def answering(*answers: Address) -> Guard:
    async def lookup(_: str) -> Sequence[Address]:
        return answers

    return Guard(CLOSED, lookup)


async def deliver(guard: Guard, url: URL | str) -> None:
    async with (
        aiohttp.ClientSession(connector=guard.connector(limit_per_host=4)) as session,
        session.post(url, data=b"x", allow_redirects=False),
    ):
        raise AssertionError(f"{url} was called")


def test_the_list_is_long_and_has_nothing_twice() -> None:
    assert len(URLS) > 400
    assert len(set(URLS)) == len(URLS)


@pytest.mark.parametrize("line", URLS)
def test_it_is_refused_when_a_job_is_saved(line: str) -> None:
    text = decoded(line, 8080)
    try:
        url = check_url(text, "target.url")
    except InvalidInput as error:
        refused = error
    else:
        assert url is not None
        assert literal_refusal(url, CLOSED)
        return
    assert refused.field == "target.url"
    assert refused.hint


async def test_it_is_refused_before_a_delivery_and_no_packet_leaves(
    listener: Listener, seen: list[tuple[str, object]]
) -> None:
    guard = Guard(CLOSED)
    for line in URLS:
        with pytest.raises(TargetRefused):
            guard.check(decoded(line, listener.port))
    assert not seen
    assert not listener.visits


async def test_it_is_refused_by_the_connection_even_if_nobody_asked_before(
    listener: Listener, seen: list[tuple[str, object]]
) -> None:
    """As the client reads the address, which is not always as we do: it may be no address to it, or
    a name, for which we are asked. The names here have no address."""
    no_address = (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)
    expected = (TargetRefused, *no_address, aiohttp.ClientConnectorDNSError)
    for line in URLS:
        with pytest.raises(expected):
            await deliver(answering(), decoded(line, listener.port))
    assert not seen
    assert not listener.visits


@pytest.mark.parametrize("address", ANSWERS, ids=str)
async def test_a_name_that_leads_inside_is_refused(
    address: Address, seen: list[tuple[str, object]]
) -> None:
    for answers in ([address], [PUBLIC, address], [address, PUBLIC]):
        with pytest.raises(TargetRefused, match=f"^{NAME}: .* is "):
            await deliver(answering(*answers), f"http://{NAME}/")
    assert not seen


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.0.0.1"])
async def test_a_name_that_leads_inside_by_another_spelling_is_refused(
    address: str, seen: list[tuple[str, object]]
) -> None:
    number = int(ip_address(address))
    for prefix in (0xFFFF << 32, 0, 0xFFFF << 48, 0x0064_FF9B << 96, 0x0064_FF9B_0001 << 80):
        with pytest.raises(TargetRefused):
            await deliver(answering(IPv6Address(prefix | number)), f"http://{NAME}/")
    assert not seen


async def test_this_test_would_see_a_connection(
    listener: Listener, seen: list[tuple[str, object]]
) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"http://127.0.0.1:{listener.port}/")
    assert ("socket.connect", ("127.0.0.1", listener.port)) in seen
    assert listener.visits
