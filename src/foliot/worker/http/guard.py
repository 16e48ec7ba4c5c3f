"""Where a callback may go: decided again for every delivery, before a byte of it is sent.

A name is resolved once, in bounded time; one bad answer refuses them all, and the connection goes
to the very addresses that were judged. Who is at the other end is looked at again once it stands,
also when it is used again: no name server, redirect or router changes its mind in between unseen.

One guard holds one allow-list; `Guards` keeps one for each. Connections are pooled by host, so work
under another list needs a guard, a connector and a session of its own. Sessions follow no redirects
by themselves and take no proxy from the environment; whoever follows one checks every hop.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from foliot.core.addresses import LOOPBACK, refusal
from foliot.core.allow_list import AllowList
from foliot.core.errors import InvalidInput
from foliot.core.hosts import Address, is_this_machine
from foliot.core.urls import Url, literal_refusal, read_url
from foliot.worker.http.lookup import MachineLookup, read_address

RESOLVE_SECONDS: Final = 5.0
# Long enough for a burst to one host, short enough for a name that moves.
REMEMBER_SECONDS: Final = 5
# Many servers close a connection that was idle for 5 s, and a call may be on its way just then.
KEEP_SECONDS: Final = 3.0
MEMO_SIZE: Final = 4096

Lookup = Callable[[str], Awaitable[Sequence[Address]]]


class TargetRefused(Exception):
    """The callback may not go there, today or on a retry; the message names the host and why."""


class Guard:
    """`lookup` is how names are resolved: by this machine, unless told otherwise."""

    def __init__(self, allow: AllowList, lookup: Lookup | None = None) -> None:
        self.allow = allow
        self._lookup = lookup or MachineLookup()
        # The same few places are called again and again. What is refused is not remembered.
        self.check_place = lru_cache(MEMO_SIZE)(self._check_place)
        self.judge_peer = lru_cache(MEMO_SIZE)(self._judge_peer)

    def check(self, url: str) -> Url:
        """What the text alone tells; raises TargetRefused. Call the `text` of what it returns."""
        try:
            read = read_url(url, "the address")
        except InvalidInput as refused:
            raise TargetRefused(str(refused)) from None
        why = literal_refusal(read, self.allow)
        if why is not None:
            raise TargetRefused(f"{read.host_text}: {why}")
        return read

    def _check_place(self, scheme: str, host: str | None, port: int | None) -> Url:
        """As a client has read it, IPv6 in brackets."""
        return self.check(f"{scheme}://{host or ''}:{port or ''}/")

    def _judge_peer(self, peer: str, place: Url) -> None:
        """Raises TargetRefused if who is there, by the system's word, may not be called."""
        name = place.host if isinstance(place.host, str) else None
        self.judge(read_address(peer), name, place.port)

    def connector(self, limit_per_host: int, limit: int = 0) -> aiohttp.TCPConnector:
        """For one session, which closes it; `limit` is of connections in all, 0 is none."""
        return _GuardedConnector(self, limit_per_host, limit)

    async def resolve(self, name: str, port: int) -> tuple[Address, ...]:
        """The addresses that `name` may be called at; raises TargetRefused, OSError."""
        if is_this_machine(name):
            return tuple(one for one in LOOPBACK if self._why(one, name, port) is None)
        answers = tuple(dict.fromkeys(await self._answers(name)))
        for one in answers:
            self.judge(one, name, port)
        return answers

    def judge(self, address: Address, name: str | None, port: int | None) -> None:
        """Raises TargetRefused if a callback may not go to `port` at `address`."""
        why = self._why(address, name, port)
        if why is not None:
            raise TargetRefused(f"{name}: {why}" if name else why)

    def _why(self, address: Address, name: str | None, port: int | None) -> str | None:
        return refusal(address, self.allow, name=name, port=port)

    async def _answers(self, name: str) -> Sequence[Address]:
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                answers = await self._lookup(name)
        except TimeoutError:
            raise OSError(None, f"{name} was not resolved in {RESOLVE_SECONDS:g} s") from None
        if not answers:
            raise OSError(None, f"{name} has no address")
        return answers


class _GuardedConnector(aiohttp.TCPConnector):
    def __init__(self, guard: Guard, limit_per_host: int, limit: int) -> None:
        super().__init__(
            resolver=_GuardedResolver(guard),
            ttl_dns_cache=REMEMBER_SECONDS,
            limit=limit,
            limit_per_host=limit_per_host,
            keepalive_timeout=KEEP_SECONDS,
        )
        self._guard = guard

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the client's own
    ) -> Connection:
        """For every request, over a new connection or one that stood already."""
        # As the client has read it, which asks no resolver about a host that is an address.
        url = req.url
        place = self._guard.check_place(url.scheme, url.host_subcomponent, url.port)
        connection = await super().connect(req, traces, timeout)
        try:
            self._guard.judge_peer(_peer(connection, place), place)
        except BaseException:
            connection.close()
            raise
        return connection


def _peer(connection: Connection, place: Url) -> str:
    transport = connection.transport
    peer = transport.get_extra_info("peername") if transport else None
    if not peer:
        raise aiohttp.ClientConnectionError(f"the connection to {place.host_text} is gone")
    return str(peer[0])


class _GuardedResolver(AbstractResolver):
    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 - both are judged
    ) -> list[ResolveResult]:
        return [_pinned(host, port, one) for one in await self._guard.resolve(host, port)]

    async def close(self) -> None:
        """Holds nothing."""


def _pinned(host: str, port: int, address: Address) -> ResolveResult:
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(
        hostname=host, host=str(address), port=port, family=family, proto=0, flags=flags
    )
