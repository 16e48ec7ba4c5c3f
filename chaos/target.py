"""The sink as the target of HTTP jobs: `POST /BEHAVIOUR/JOB`. What is called tells the sink what a
handler would, under the fence and the key that came with the call, and answers when it is done.
Whoever hangs up has it stopped, as a handler is.
"""

import asyncio
import json
import os
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final
from uuid import UUID

from foliot.testing.receiver import Received, read_request

Keep = Callable[[bytes], Awaitable[int]]
DONE: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
LATER: Final = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
UNKNOWN: Final = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class Call:
    """One request, by its headers an attempt of an execution."""

    def __init__(self, request: Received, keep: Keep) -> None:
        self._headers = request.headers
        self._keep = keep
        _, self.behaviour, self._job = request.path.split("/")
        self.payload = json.loads(request.body or b"{}")
        self.attempt_number = int(request.headers["x-attempt-number"])

    @property
    def share(self) -> float:
        """From 0 to 1, by the end of the execution's id, which is a hash."""
        return int.from_bytes(UUID(self._headers["x-execution-id"]).bytes[-4:]) / 2**32

    async def tell(self, what: str) -> None:
        known = {
            "execution_id": self._headers["x-execution-id"],
            "fence": int(self._headers["x-fencing-token"]),
            "attempt_number": self.attempt_number,
            "idempotency_key": self._headers["x-idempotency-key"],
            "what": what,
            "process": os.getpid(),
            "job": self._job,
        }
        await self._keep(json.dumps(known).encode())


class Target:
    def __init__(self, keep: Keep) -> None:
        self._keep = keep

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Call after call; it is the caller who closes."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                call = Call(await read_request(reader), self._keep)
                answer = await _unless_gone(reader, call)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        writer.close()


async def _unless_gone(reader: StreamReader, call: Call) -> bytes | None:
    """The answer, or None if the caller has hung up before."""
    working, gone = asyncio.create_task(_answer(call)), asyncio.create_task(reader.read(1))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.wait({working, gone})
    await call.tell("cancelled")
    return None


async def _answer(call: Call) -> bytes:
    await call.tell("begun")
    match call.behaviour:
        case "slow":
            await asyncio.sleep(call.payload["seconds"] * (0.5 + call.share))
        case "quick":
            await asyncio.sleep(call.payload["seconds"] * call.share)
        case "stumble":
            if call.attempt_number <= call.payload["failures"]:
                await call.tell("failing")
                return LATER
        case _:
            return UNKNOWN
    await call.tell("done")
    return DONE
