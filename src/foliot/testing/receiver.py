"""A server on loopback that receives callbacks, and answers as well or as badly as a test wants."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

HEAD_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Received:
    """A request. Names of headers are in small letters."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Talk:
    """One connection, of which a request has been read."""

    request: Received
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: str = "200 OK", body: bytes = b"", **headers: str) -> None:
        """In names of headers, _ is -."""
        told = {"content_length": str(len(body)), **headers}
        lines = "".join(f"{name.replace('_', '-')}: {told[name]}\r\n" for name in told)
        await self.send(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body)


Behaviour = Callable[[Talk], Awaitable[None]]


@dataclass(slots=True)
class Receiver:
    """`behave` may be changed at any time; `heard` is set whenever a request has come."""

    behave: Behaviour
    url: str = ""
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    open_now: int = 0
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def until_empty(self) -> None:
        """No connection is open."""
        async with asyncio.timeout(10):
            while self.open_now:
                self.left.clear()
                await self.left.wait()

    async def until(self, number: int) -> None:
        """So many requests have come."""
        async with asyncio.timeout(10):
            while len(self.requests) < number:
                self.heard.clear()
                await self.heard.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_now += 1
        try:
            with suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
                while True:
                    request = await read_request(reader)
                    self.requests.append(request)
                    self.heard.set()
                    await self.behave(Talk(request, reader, writer))
                    if writer.is_closing():
                        return
        finally:
            self.open_now -= 1
            self.left.set()
            writer.close()


async def read_request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    pairs = [line.partition(": ") for line in lines]
    headers = {name.lower(): value for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body)


async def fine(talk: Talk) -> None:
    """200 with the JSON `{"ok": true}`."""
    await talk.answer(body=b'{"ok": true}', content_type="application/json")


@asynccontextmanager
async def receiver(
    behave: Behaviour = fine, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    """Those who still talk at the end are cut off."""
    made = Receiver(behave)
    talks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            talks.add(task)
            task.add_done_callback(talks.discard)
        with suppress(asyncio.CancelledError):
            await made.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=HEAD_BYTES_MAX, ssl=tls)
    scheme, port = "https" if tls else "http", server.sockets[0].getsockname()[1]
    made.url = f"{scheme}://127.0.0.1:{port}"
    try:
        yield made
    finally:
        server.close()
        for task in tuple(talks):
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
