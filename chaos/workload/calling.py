"""Requests over real HTTP, every one of them recorded, answered or not.

An answer that says "later", or that does not come, is followed by the same request again: the same
key and the same body. What nobody answered was done once or not at all, and the record says so.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final
from uuid import UUID

import aiohttp

from chaos.facts import Exchange
from chaos.workload.kinds import Body

Record = Callable[[Exchange], None]

TIMEOUT: Final = aiohttp.ClientTimeout(total=8, sock_connect=3)
PAUSE_SECONDS_MAX: Final = 3.0
_IN_FLIGHT: Final = "IDEMPOTENCY_IN_FLIGHT"
IF_MATCH: Final = "If-Match"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the API is, which may change whenever it is started anew, and a key to it."""

    url: Callable[[], str]
    key: str


@dataclass(frozen=True, slots=True)
class Request:
    """`body` is the JSON of a change and the query of a GET. A `version` is sent as If-Match. That,
    and what else the address says (`about`), is recorded as a part of the body."""

    action: str
    method: str
    path: str
    body: Body | None = None
    key: str | None = None
    version: int | None = None
    about: Body = field(default_factory=dict)
    job_id: UUID | None = None
    execution_id: UUID | None = None

    def headers(self) -> dict[str, str]:
        headers = {}
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        if self.version is not None:
            headers[IF_MATCH] = f'"{self.version}"'
        return headers

    def recorded(self) -> Body:
        seen = {} if self.version is None else {IF_MATCH: self.version}
        return (self.body or {}) | seen | self.about


@dataclass(frozen=True, slots=True)
class Reply:
    """No status: no answer came."""

    status: int | None = None
    body: Mapping[str, Any] | None = None
    wait_seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return self.status is not None and self.status < 300

    @property
    def is_settled(self) -> bool:
        """Whether to send it again would bring nothing new."""
        if self.status is None or self.status >= 500 or self.status == 429:
            return False
        return self.code != _IN_FLIGHT

    @property
    def code(self) -> str | None:
        error = (self.body or {}).get("error")
        return error.get("code") if isinstance(error, dict) else None

    def id(self, name: str) -> UUID:
        return UUID(str((self.body or {})[name]))


class Line:
    """To the API, for any number of clients at once; whoever opens it closes it."""

    def __init__(
        self,
        address: Address,
        record: Record,
        stop: asyncio.Event,
        *,
        pause_seconds: float = PAUSE_SECONDS_MAX,
    ) -> None:
        self._address, self._record = address, record
        self._stop = stop
        self._pause_seconds = pause_seconds
        self._session = aiohttp.ClientSession(
            timeout=TIMEOUT, headers={"Authorization": f"Bearer {address.key}"}
        )

    async def close(self) -> None:
        await self._session.close()

    async def send(self, request: Request) -> Reply:
        """Once. Lists are recorded without what was in them."""
        sent = time.monotonic()
        reply = await self._try(request)
        answered = None if reply.status is None else time.monotonic()
        exchange = Exchange(
            request.action,
            sent,
            answered,
            reply.status,
            request.key,
            request.recorded(),
            None if reply.body is not None and "next_cursor" in reply.body else reply.body,
            request.job_id,
            request.execution_id,
        )
        self._record(_named(exchange))
        return reply

    async def insist(self, request: Request, chance: Random, tries: int | None = None) -> Reply:
        """Again and again until it is answered, or so often, or the run is over."""
        count = 0
        while True:
            reply = await self.send(request)
            count += 1
            if reply.is_settled or count == tries or (tries and self._stop.is_set()):
                return reply
            wanted = max(0.1 * 2 ** min(count, 6), reply.wait_seconds)
            pause = min(wanted, self._pause_seconds)
            await self.rest(pause * chance.uniform(0.7, 1.3), wakes=tries is not None)

    async def rest(self, seconds: float, *, wakes: bool = True) -> None:
        """A pause, cut short when the run is over, unless it is needed then too."""
        if not wakes:
            await asyncio.sleep(seconds)
            return
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return

    async def _try(self, request: Request) -> Reply:
        is_read = request.method == "GET"
        try:
            async with self._session.request(
                request.method,
                f"{self._address.url()}/v1{request.path}",
                params=request.body if is_read else None,
                json=None if is_read else request.body,
                headers=request.headers(),
            ) as answer:
                body = await answer.json()
                return Reply(answer.status, body, _seconds(answer.headers.get("Retry-After")))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return Reply()


def _named(exchange: Exchange) -> Exchange:
    """With the ids of what the answer is about, where the address did not say."""
    answer = exchange.answer or {}
    job_id, execution_id = answer.get("job_id"), answer.get("execution_id")
    return replace(
        exchange,
        job_id=exchange.job_id or (UUID(job_id) if job_id else None),
        execution_id=exchange.execution_id or (UUID(execution_id) if execution_id else None),
    )


def _seconds(header: str | None) -> float:
    try:
        return max(0.0, float(header or 0))
    except ValueError:
        return 0.0
