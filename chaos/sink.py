"""Where effects go: a process of its own outside the system, that nobody stops and that forgets
nothing. `python -m chaos.sink SOCKET FILE`, until its standard input ends. It says on which port of
loopback it can be called over HTTP.

Who connects sends lines of JSON, each after the answer to the one before. A record is given the
time it came and its number, is appended to the file and on the disk before its number is the
answer. Records that come together share one trip to the disk.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import time
from asyncio import Future, StreamReader, StreamWriter
from contextlib import suppress
from pathlib import Path
from typing import Final

from chaos.target import Target

LISTENING: Final = "listening"
_LINE_BYTES_MAX: Final = 65_536


class Sink:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._count = 0
        self._waiting: list[tuple[bytes, Future[None]]] = []
        self._came = asyncio.Event()

    async def keep(self, line: bytes) -> int:
        """The record's number, once it is on the disk."""
        entry = json.loads(line)
        self._count += 1
        number = self._count
        kept = {"number": number, "monotonic": time.monotonic()} | entry
        written: Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((json.dumps(kept).encode() + b"\n", written))
        self._came.set()
        await written
        return number

    async def write(self) -> None:
        """All that waits, again and again."""
        while True:
            await self._came.wait()
            self._came.clear()
            batch, self._waiting = self._waiting, []
            await asyncio.to_thread(self._append, b"".join(line for line, _ in batch))
            for _, written in batch:
                if not written.done():  # whoever has hung up is not told
                    written.set_result(None)

    def _append(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]
        os.fdatasync(self._file)

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(b"%d\n" % await self.keep(line))
                await writer.drain()
        writer.close()


async def main(socket: Path, path: Path) -> None:
    sink, ended = Sink(path), asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_the_end() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    writing = asyncio.create_task(sink.write())
    server = await asyncio.start_unix_server(sink.serve, socket, limit=_LINE_BYTES_MAX)
    target = await asyncio.start_server(Target(sink.keep).serve, "127.0.0.1", 0)
    port = target.sockets[0].getsockname()[1]
    async with server, target:
        sys.stdout.write(f"{LISTENING} {port}\n")
        sys.stdout.flush()
        stopping = asyncio.create_task(ended.wait())
        await asyncio.wait({writing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if writing.done():
        writing.result()  # a disk that takes nothing more: nobody is answered from here on


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
