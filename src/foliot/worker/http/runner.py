"""Makes attempts of HTTP targets: one request each, bounded in time, in memory and in number.

The time of an attempt is kept from outside of the request, whatever its host does with it. A
request cannot be asked to stop, only be broken off: that is what cancelling does, at once.
"""

import asyncio
from contextlib import suppress
from typing import Final
from uuid import UUID

import aiohttp
from yarl import URL

from foliot.core.errors import InvalidInput
from foliot.core.headers import check_headers
from foliot.core.model import ErrorType, Failure
from foliot.core.urls import Url
from foliot.runtime.envelope import Unopenable
from foliot.store.errors import DatabaseError
from foliot.worker.http.answers import Answer
from foliot.worker.http.call import Call
from foliot.worker.http.destinations import Destination, Destinations, Word
from foliot.worker.http.failures import failure_of, is_ours
from foliot.worker.http.guard import Guard, TargetRefused
from foliot.worker.http.guards import Guards
from foliot.worker.http.requests import SignFor, body_of, headers_of
from foliot.worker.tasks import (
    READ_WITHIN_SECONDS,
    Cancelled,
    Ended,
    Failed,
    HandedBack,
    Held,
    Reporter,
    Task,
)

# To connect and to agree on a key; to resolve the name has a time of its own.
CONNECT_SECONDS: Final = 10.0
OWN_LACK_SECONDS: Final = 1.0
# Until a person has given this worker the key that it lacks, or another worker has taken it.
UNSIGNED_SECONDS: Final = 30.0
# What is broken off ends within a few turns of the loop.
BREAK_OFF_SECONDS: Final = 1.0
_LEAVING: Final = "the worker leaves"
_OWN_LACK: Final = "this worker has no sockets, threads or memory left for another call"


class HttpRunner:
    """The Executor of HTTP targets. `sign_for` tells how requests of a tenant are signed."""

    def __init__(
        self, guards: Guards, destinations: Destinations, sign_for: SignFor | None = None
    ) -> None:
        self._guards = guards
        self._destinations = destinations
        self._sign_for = sign_for
        self._sessions: dict[Guard, aiohttp.ClientSession] = {}
        self._calls: dict[UUID, Call] = {}
        self._idle = asyncio.Event()
        self._closing = False

    async def start(self) -> None:
        """Sessions come with the first call under their allow-list."""

    async def run(self, task: Task, reporter: Reporter) -> Ended:
        if task.http is None or self._closing:
            return HandedBack(_LEAVING)
        call = Call(task, task.http)
        self._calls[task.execution_id] = call
        try:
            async with call.limit:
                ended = await self._attempt(call, reporter)
        except TimeoutError:
            ended = call.out_of_time()
        finally:
            if self._calls.get(task.execution_id) is call:
                del self._calls[task.execution_id]
            if not self._calls:
                self._idle.set()
        if isinstance(ended, Failed) and ended.response is not None:
            reporter.logged(task, [call.line_about(ended)])
        return ended

    def cancel(self, execution_id: UUID, reason: str) -> None:
        call = self._calls.get(execution_id)
        if call is not None:
            call.stop(Cancelled(reason))

    async def close(self, *, grace_seconds: float) -> None:
        self._closing = True
        await self._until_idle(grace_seconds)
        for call in tuple(self._calls.values()):
            call.stop(HandedBack(_LEAVING))
        await self._until_idle(BREAK_OFF_SECONDS)
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    async def _until_idle(self, seconds: float) -> None:
        if not self._calls or seconds <= 0:
            return
        self._idle.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()

    async def _attempt(self, call: Call, reporter: Reporter) -> Ended:
        tenant_id = call.task.tenant_id
        try:
            async with asyncio.timeout(READ_WITHIN_SECONDS):
                guard = await self._guards.of(tenant_id)
                if self._sign_for is not None:
                    call.sign = await self._sign_for(tenant_id)
            url = guard.check(call.target.url)
            check_headers(call.target.headers, "target.headers")
        except (TargetRefused, InvalidInput) as refused:
            return _refused(refused)
        except Unopenable as missing:
            return Held(UNSIGNED_SECONDS, f"its signing key cannot be opened: {missing}")
        except (DatabaseError, TimeoutError):
            return HandedBack("what its tenant may call could not be read")
        destination = Destination(tenant_id, url.scheme, url.host_text, url.port)
        leave = await self._destinations.ask(destination)
        if isinstance(leave, Held):
            return leave
        word = Word.NOTHING
        try:
            call.begin()
            reporter.started(call.task)
            ended = await self._exchange(call, guard, url)
            word = word_of(ended)
        except asyncio.CancelledError:
            word = Word.FAILED if call.is_late else Word.NOTHING
            raise
        finally:
            self._destinations.end(leave, word)
        return ended

    async def _exchange(self, call: Call, guard: Guard, url: Url) -> Ended:
        body = body_of(call.task, call.target)
        headers = headers_of(call.task, call.target, body, call.sign)
        try:
            async with self._session(guard).request(
                call.target.method.upper(),
                URL(url.text, encoded=True),
                headers=headers,
                data=body or None,
                allow_redirects=False,
            ) as response:
                call.answer = Answer(response)
                await call.answer.read()
        except TargetRefused as refused:
            return _refused(refused)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if is_ours(error):
                return Held(OWN_LACK_SECONDS, _OWN_LACK)
            return call.broken(failure_of(error, url.host_text))
        return call.answer.end()

    def _session(self, guard: Guard) -> aiohttp.ClientSession:
        session = self._sessions.get(guard)
        if session is None:
            session = self._sessions[guard] = aiohttp.ClientSession(
                connector=guard.connector(limit_per_host=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return session


def word_of(ended: Ended) -> Word:
    """What an end shows about where the call went."""
    match ended:
        case Failed(Failure(type=ErrorType.HTTP_ERROR, http_status=int(status))):
            return Word.FAILED if status >= 500 else Word.ANSWERED
        case Failed(Failure(type=ErrorType.TARGET_REFUSED)) | Held():
            return Word.NOTHING
        case Failed():
            return Word.FAILED
        case _:
            return Word.ANSWERED


def _refused(refused: TargetRefused | InvalidInput) -> Failed:
    return Failed(Failure(ErrorType.TARGET_REFUSED, str(refused)))
