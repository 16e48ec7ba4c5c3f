"""The guard on real connections: pinned, judged again, bounded, and open where it may be."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv6Address

import aiohttp
import pytest

from foliot.core.allow_list import CLOSED, AllowList, read_allow_list
from foliot.core.hosts import Address
from foliot.worker.http import guard as guard_module
from foliot.worker.http import lookup as lookup_module
from foliot.worker.http.failures import is_ours
from foliot.worker.http.guard import Guard, TargetRefused
from foliot.worker.http.lookup import MachineLookup, read_address

PUBLIC = IPv4Address("93.184.216.34")
INSIDE = IPv4Address("127.0.0.1")
NAME = "callbacks.example"
LOOPBACK_OPEN = read_allow_list(["loopback"], "X")


class Names:
    """Answers in turn; the last one for ever."""

    def __init__(self, *answers: Sequence[Address]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, name: str) -> Sequence[Address]:
        self.asked.append(name)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class Server:
    """Speaks just enough HTTP, keeps connections, and keeps what it has heard."""

    def __init__(self) -> None:
        self.connections = 0
        self.heard: list[bytes] = []
        self.port = 0
        self.gone = asyncio.Event()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while head := await reader.read(65536):
            self.heard.append(head)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        self.gone.set()
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server._talk, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    yield server
    listening.close()
    await listening.wait_closed()


@pytest.fixture
async def connects(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nobody leaves this machine: who tries is written down and refused."""
    tried: list[str] = []

    async def connect(_: socket.socket, address: tuple[str, int]) -> None:
        tried.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", connect)
    return tried


@asynccontextmanager
async def session_of(guard: Guard) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=guard.connector(limit_per_host=4)) as session:
        yield session


async def get(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(url, allow_redirects=False) as response:
        return await response.text()


async def test_a_public_name_is_called_at_the_address_that_was_judged(connects: list[str]) -> None:
    names = Names([PUBLIC], [INSIDE])
    async with session_of(Guard(CLOSED, names)) as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(session, f"http://{NAME}/")
        assert connects == [str(PUBLIC)]
        assert names.asked == [NAME]


async def test_a_name_that_turns_inward_is_refused_the_next_time(connects: list[str]) -> None:
    async with session_of(Guard(CLOSED, Names([PUBLIC], [INSIDE]))) as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(session, f"http://{NAME}/")
        assert isinstance(session.connector, aiohttp.TCPConnector)
        session.connector.clear_dns_cache()
        with pytest.raises(TargetRefused, match=f"^{NAME}: 127.0.0.1 is a loopback address$"):
            await get(session, f"http://{NAME}/")
    assert connects == [str(PUBLIC)]


async def test_one_bad_answer_refuses_them_all(connects: list[str]) -> None:
    mixed: list[list[Address]] = [
        [PUBLIC, IPv4Address("10.0.0.1")],
        [IPv6Address("fd00::1"), PUBLIC],
    ]
    for answers in mixed:
        async with session_of(Guard(CLOSED, Names(answers))) as session:
            with pytest.raises(TargetRefused, match="is a private address"):
                await get(session, f"http://{NAME}/")
    assert not connects


async def test_who_answers_is_judged_before_anything_is_said(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A router that sends packets elsewhere: the connection to a public address ends up inside."""
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect

    async def astray(sock: socket.socket, _: object) -> None:
        await connect(sock, ("127.0.0.1", server.port))

    monkeypatch.setattr(loop, "sock_connect", astray)
    async with session_of(Guard(CLOSED, Names([PUBLIC]))) as session:
        with pytest.raises(TargetRefused, match=r"127\.0\.0\.1 is a loopback address"):
            await get(session, f"http://{NAME}/")
    await server.gone.wait()
    assert server.connections == 1
    assert not server.heard


async def test_a_connection_that_is_used_again_is_judged_again(server: Server) -> None:
    url = f"http://{NAME}:{server.port}/"
    guard = Guard(LOOPBACK_OPEN, Names([INSIDE]))
    async with session_of(guard) as session:
        assert [await get(session, url) for _ in range(2)] == ["ok", "ok"]
        guard.allow = CLOSED
        guard.judge_peer.cache_clear()
        with pytest.raises(TargetRefused):
            await get(session, url)
    assert (server.connections, len(server.heard)) == (1, 2)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "a.localhost", NAME])
async def test_what_is_open_is_called(server: Server, host: str) -> None:
    names = Names([INSIDE])
    async with session_of(Guard(LOOPBACK_OPEN, names)) as session:
        assert await get(session, f"http://{host}:{server.port}/x") == "ok"
    assert b"Host: " + host.encode() in server.heard[0]
    assert names.asked == ([NAME] if host == NAME else [])


async def test_a_name_that_is_open_is_called_and_no_other_is(server: Server) -> None:
    guard = Guard(read_allow_list([f"{NAME}:{server.port}"], "X"), Names([INSIDE]))
    async with session_of(guard) as session:
        assert await get(session, f"http://{NAME}:{server.port}/") == "ok"
        for url in (f"http://other.example:{server.port}/", f"http://{NAME}:1/"):
            with pytest.raises(TargetRefused):
                await get(session, url)
    assert server.connections == 1


@pytest.mark.parametrize(
    ("host", "allow"), [("127.0.0.1", CLOSED), ("localhost", CLOSED), ("127.1", LOOPBACK_OPEN)]
)
async def test_what_is_shut_is_not_called(server: Server, host: str, allow: AllowList) -> None:
    guard = Guard(allow, Names([INSIDE]))
    async with session_of(guard) as session:
        with pytest.raises((TargetRefused, aiohttp.InvalidURL)):
            await get(session, f"http://{host}:{server.port}/")
    with pytest.raises(TargetRefused, match=host):
        guard.check(f"http://{host}:{server.port}/")
    assert not server.connections


async def test_a_redirect_that_is_followed_is_judged_like_the_first_hop(
    connects: list[str],
) -> None:
    guard = Guard(CLOSED, Names([PUBLIC]))
    assert guard.check("https://example.com/a").text == "https://example.com/a"
    with pytest.raises(TargetRefused, match=r"^169\.254\.169\.254: "):
        guard.check("http://169.254.169.254/latest")
    assert not connects


async def test_the_message_holds_no_more_of_the_address_than_its_host() -> None:
    with pytest.raises(TargetRefused) as refused:
        Guard(CLOSED).check("http://10.0.0.1/hunter2?key=hunter2")
    assert str(refused.value) == "10.0.0.1: 10.0.0.1 is a private address"


async def test_a_name_server_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lookup(_: str) -> Sequence[Address]:
        await asyncio.Event().wait()
        return ()

    monkeypatch.setattr(guard_module, "RESOLVE_SECONDS", 0.01)
    async with session_of(Guard(CLOSED, lookup)) as session:
        with pytest.raises(aiohttp.ClientConnectorDNSError, match=r"was not resolved in 0\.01 s"):
            await get(session, f"http://{NAME}/")


async def test_a_name_without_an_address_is_no_refusal() -> None:
    async with session_of(Guard(CLOSED, Names([]))) as session:
        with pytest.raises(aiohttp.ClientConnectorDNSError, match="has no address"):
            await get(session, f"http://{NAME}/")


async def test_this_machine_resolves_names() -> None:
    assert INSIDE in await MachineLookup()("localhost")


async def test_a_name_that_is_not_there_is_the_systems_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(socket.gaierror):
        await MachineLookup()(NAME)


async def test_lookups_that_hang_hold_a_few_threads_until_they_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    let_go = threading.Event()
    under_way = threading.Semaphore(0)

    def hang(*_: object, **__: object) -> list[object]:
        under_way.release()
        let_go.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    monkeypatch.setattr(lookup_module, "THREADS_MAX", 2)
    lookup = MachineLookup()
    asking = [asyncio.ensure_future(lookup(f"{n}.example")) for n in range(3)]
    await asyncio.to_thread(under_way.acquire)
    await asyncio.to_thread(under_way.acquire)
    for one in asking[:2]:
        one.cancel()
    await asyncio.wait(asking[:2])
    assert not under_way.acquire(blocking=False)
    let_go.set()
    assert await asking[2] == []


class NoThread(threading.Thread):
    """As at the limit of what may run at once."""

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


async def test_a_thread_that_cannot_be_started_takes_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lookup_module, "THREADS_MAX", 2)
    lookup = MachineLookup()
    with monkeypatch.context() as full:
        full.setattr(lookup_module, "Thread", NoThread)
        for _ in range(3):
            with pytest.raises(BlockingIOError, match="no thread to resolve") as raised:
                await asyncio.wait_for(lookup(NAME), 5)
            assert is_ours(raised.value)
    assert INSIDE in await asyncio.wait_for(lookup("localhost"), 5)


async def test_a_lack_of_threads_is_this_machines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the client tells it, by its own kind of error."""
    monkeypatch.setattr(lookup_module, "Thread", NoThread)
    async with session_of(Guard(CLOSED)) as session:
        with pytest.raises(aiohttp.ClientConnectorDNSError) as raised:
            await get(session, f"http://{NAME}/")
    assert is_ours(raised.value)


async def test_an_answer_that_cannot_be_read_takes_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def strange(*_: object, **__: object) -> list[tuple[int, tuple[str, int]]]:
        return [(0, ("no address", 0))]

    monkeypatch.setattr(lookup_module, "THREADS_MAX", 2)
    lookup = MachineLookup()
    with monkeypatch.context() as odd:
        odd.setattr(socket, "getaddrinfo", strange)
        for _ in range(3):
            with pytest.raises(OSError, match=f"{NAME} could not be resolved") as raised:
                await asyncio.wait_for(lookup(NAME), 5)
            assert not is_ours(raised.value)
    assert INSIDE in await asyncio.wait_for(lookup("localhost"), 5)


def test_a_zone_is_no_part_of_an_address() -> None:
    assert read_address("fe80::a9fe:a9fe%eth0") == IPv6Address("fe80::a9fe:a9fe")
