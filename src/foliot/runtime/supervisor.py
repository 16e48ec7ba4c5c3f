"""Keep processes alive: what dies is started again, sooner at first, never in a tight loop.

The first restart waits 0.2 s and each further one twice as long, up to 2 s; a process that lived
10 s begins anew. They are stopped in the reverse order of their start, so that what others lean
on goes last.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self

from foliot.core.errors import FoliotError
from foliot.runtime.clock import Clock

DELAY_SECONDS_MIN: Final = 0.2
DELAY_SECONDS_MAX: Final = 2.0
STEADY_AFTER_SECONDS: Final = 10.0


class Process(Protocol):
    """Something that runs apart from us and may end at any time. It can be started again."""

    @property
    def pid(self) -> int | None: ...

    async def start(self) -> None: ...

    async def wait(self) -> int: ...

    async def stop(self) -> None: ...

    def kill(self) -> None: ...


@dataclass(frozen=True)
class Started:
    role: str
    pid: int | None
    restarts: int


@dataclass(frozen=True)
class Died:
    role: str
    status: int
    delay_seconds: float


@dataclass(frozen=True)
class NotStarted:
    role: str
    reason: str
    delay_seconds: float


RoleEvent = Started | Died | NotStarted


@dataclass(frozen=True)
class Role:
    name: str
    process: Process


def restart_delay_seconds(previous: float | None, *, lived_seconds: float) -> float:
    if previous is None or lived_seconds >= STEADY_AFTER_SECONDS:
        return DELAY_SECONDS_MIN
    return min(previous * 2, DELAY_SECONDS_MAX)


class Supervisor:
    """A block of code under which roles stay alive; leaving the block stops them all."""

    def __init__(self, clock: Clock, report: Callable[[RoleEvent], None]) -> None:
        self._clock = clock
        self._report = report
        self._roles: list[Role] = []
        self._keepers: list[asyncio.Task[None]] = []
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        # The block's own error stays itself; only a cancellation is the group's to understand.
        ours = (kind, error, trace) if kind is asyncio.CancelledError else (None, None, None)
        async with AsyncExitStack() as in_reverse:
            in_reverse.push_async_callback(self._group.__aexit__, *ours)
            for role in self._roles:
                in_reverse.push_async_callback(role.process.stop)

    @property
    def roles(self) -> tuple[Role, ...]:
        return tuple(self._roles)

    async def start(self, name: str, process: Process) -> None:
        """Raises what the first start raises; from then on the role is kept alive."""
        self._roles.append(Role(name, process))
        await process.start()
        self._report(Started(name, process.pid, restarts=0))
        self._keepers.append(self._group.create_task(self._keep(name, process), name=name))

    async def run(self, name: str, process: Process) -> int:
        """Once, to its end, not restarted; stopped with the others if the block ends first."""
        self._roles.append(Role(name, process))
        await process.start()
        return await process.wait()

    def kill(self) -> None:
        """For those who will not wait: every process is ended now; leaving the block is then
        quick."""
        for role in reversed(self._roles):
            role.process.kill()

    async def _keep(self, name: str, process: Process) -> None:
        delay: float | None = None
        restarts = 0
        while True:
            started_at = self._clock.monotonic()
            status = await process.wait()
            lived = self._clock.monotonic() - started_at
            delay = restart_delay_seconds(delay, lived_seconds=lived)
            self._report(Died(name, status, delay))
            delay = await self._start_again(name, process, delay)
            restarts += 1
            self._report(Started(name, process.pid, restarts))

    async def _start_again(self, name: str, process: Process, delay: float) -> float:
        """Returns the delay that was waited last."""
        while True:
            await self._clock.sleep(delay)
            try:
                await process.start()
            except (FoliotError, OSError) as error:
                delay = restart_delay_seconds(delay, lived_seconds=0)
                self._report(NotStarted(name, str(error), delay))
            else:
                return delay
