"""Which host an attempt gets: a shared one, an idle one of its kind, or a fresh one.

Hosts for one at a time come as they are needed (the worker's concurrency bounds them), stay for
the next attempt up to a number, and are renewed after many. While every shared host stands still
because a handler keeps its loop, new attempts get another one, within bounds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from foliot.worker.hosts.host import Host, Shape
from foliot.worker.hosts.messages import News
from foliot.worker.hosts.nursery_link import NurseryLink

STILL_SECONDS: Final = 2.0
_SHARED: Final = Shape(is_async=True, is_shared=True)


@dataclass(frozen=True, slots=True)
class HostLimits:
    """`relief` hosts are started beside the shared ones while those stand still. What has not
    begun in a host after `begin_seconds` is asked to stop and handed back; where the host is busy
    with another's code or with importing, not before its timeout."""

    shared: int = 1
    relief: int = 2
    idle: int = 4
    runs: int = 1000
    begin_seconds: float = 10.0


class HostPool:
    def __init__(
        self, limits: HostLimits, nursery: NurseryLink, hear: Callable[[Host, News], None]
    ) -> None:
        self._limits = limits
        self._nursery = nursery
        self._hear = hear
        self._count = 0
        self._idle: dict[bool, list[Host]] = {True: [], False: []}
        self.hosts: dict[int, Host] = {}

    def shared(self) -> list[Host]:
        """Those that take part in work; one that was told to go does not."""
        return [
            host for host in self.hosts.values() if host.shape.is_shared and not host.is_leaving
        ]

    def pick_shared(self) -> Host:
        hosts = self.shared()
        if len(hosts) == 1 == self._limits.shared and hosts[0].silent_seconds() < STILL_SECONDS:
            return hosts[0]
        if len(hosts) < self._limits.shared:
            return self._fork(_SHARED)
        moving = [host for host in hosts if host.silent_seconds() < STILL_SECONDS]
        if not moving and len(hosts) < self._limits.shared + self._limits.relief:
            return self._fork(_SHARED)
        return min(moving or hosts, key=lambda host: len(host.under_way))

    def pick_single(self, *, is_async: bool, must_be_fresh: bool) -> Host:
        idle = self._idle[is_async]
        while idle and not must_be_fresh:
            host = idle.pop()
            if not host.is_leaving:
                return host
        return self._fork(Shape(is_async, is_shared=False))

    def give_back(self, host: Host, *, is_spent: bool) -> None:
        """An attempt in it has ended."""
        if host.is_leaving:
            return
        if host.shape.is_shared:
            if not host.under_way and len(self.shared()) > self._limits.shared:
                host.kill()
            return
        idle = self._idle[host.shape.is_async]
        if is_spent or host.runs >= self._limits.runs or len(idle) >= self._limits.idle:
            host.kill()
        else:
            idle.append(host)

    def forget(self, number: int) -> Host | None:
        """It is gone."""
        host = self.hosts.pop(number, None)
        if host is not None:
            host.is_leaving = True
            idle = self._idle[host.shape.is_async]
            if host in idle:
                idle.remove(host)
        return host

    def _fork(self, shape: Shape) -> Host:
        self._count += 1
        host = Host(self._count, shape, self._nursery, self._hear)
        self.hosts[host.number] = host
        return host
