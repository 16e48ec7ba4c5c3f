"""A wire between client and server that can be cut at the worst moment.

It listens on a TCP port of this machine and speaks to the server's unix socket.
"""

import asyncio
from asyncio import StreamReader, StreamWriter
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

CHUNK_BYTES: Final = 65_536


class DatabaseProxy:
    """`async with DatabaseProxy(url) as proxy:` and connect to `proxy.url`."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        options = parse_qs(self._parts.query)
        self._socket = f"{options['host'][0]}/.s.PGSQL.{options['port'][0]}"
        self._listener: asyncio.Server | None = None
        self._clients: set[StreamWriter] = set()
        self._cut_at: bytes | None = None
        self._deliver = True
        self._silent = False
        self._stranded: frozenset[StreamWriter] = frozenset()

    @property
    def url(self) -> str:
        if self._listener is None:
            raise RuntimeError("the proxy has not been started")
        port = self._listener.sockets[0].getsockname()[1]
        user = self._parts.netloc.rpartition("@")[0]
        return f"postgresql://{user}@127.0.0.1:{port}{self._parts.path}?sslmode=disable"

    def cut_at(self, words: bytes, *, deliver: bool) -> None:
        """Cut the wire once the client sends `words`: before they arrive, or (`deliver`) after the
        server has done what they say, so that only the answer is lost."""
        self._cut_at, self._deliver = words, deliver

    def fall_silent(self) -> None:
        """From now on nothing passes and nothing is closed: a black hole."""
        self._silent = True

    def strand(self) -> None:
        """Who is connected now hears nothing more, and is not told; new connections work."""
        self._stranded = frozenset(self._clients)

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._listener is not None:
            self._listener.close()
        for writer in self._clients:
            writer.transport.abort()

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(self._socket)
        self._clients |= {writer, server_writer}
        answer_is_lost = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(reader, server_writer, answer_is_lost))
                group.create_task(self._answer(server_reader, writer, answer_is_lost))
        except* OSError:
            pass  # either side is gone, and the other with it
        writer.transport.abort()
        server_writer.transport.abort()

    async def _forward(
        self, reader: StreamReader, server: StreamWriter, answer_is_lost: asyncio.Event
    ) -> None:
        while data := await reader.read(CHUNK_BYTES):
            if self._silent or server in self._stranded:
                continue
            if self._cut_at is not None and self._cut_at in data:
                self._cut_at = None
                if not self._deliver:
                    break
                answer_is_lost.set()
            server.write(data)
            await server.drain()
        raise ConnectionError("the client's side is closed")

    async def _answer(
        self, server: StreamReader, writer: StreamWriter, answer_is_lost: asyncio.Event
    ) -> None:
        while data := await server.read(CHUNK_BYTES):
            if answer_is_lost.is_set():
                break
            if not self._silent and writer not in self._stranded:
                writer.write(data)
                await writer.drain()
        raise ConnectionError("the server's side is closed")
