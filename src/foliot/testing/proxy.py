"""A wire between a node and the database that can fail in every way a wire can, at any point.

It listens on a TCP port of this machine and speaks to the server's socket. Faults strike all of a
node's connections, or one at a chosen statement: before it is forwarded, inside its transaction,
or after the server has committed it and before the node can know.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Literal, Self
from urllib.parse import parse_qs, urlsplit

from foliot.runtime.chance import random_fraction
from foliot.runtime.clock import SystemClock
from foliot.testing.line import Flow, House, Line
from foliot.testing.points import Point, Points, Strike, do_nothing, file_name

Way = Literal["to server", "to client"]
BOTH_WAYS: Final[frozenset[Way]] = frozenset({"to server", "to client"})
POSTGRES_PORT: Final = 5432


class NodeProxy:
    """`async with NodeProxy(url) as proxy:` and connect to `proxy.url`."""

    def __init__(self, server_url: str, name: str = "node") -> None:
        self.name = name
        self._parts = urlsplit(server_url)
        self._clock = SystemClock()
        self._listener: asyncio.Server | None = None
        self._is_over = False
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._points = Points()
        self._house = House(self._points, self._reach, self._slow_down, self._leave)
        self._lines: set[Line] = set()
        self._silent: frozenset[Way] = frozenset()
        self._slow_seconds = 0.0
        self._fraction = random_fraction

    @property
    def url(self) -> str:
        if self._listener is None:
            raise RuntimeError("the proxy has not been started")
        port = self._listener.sockets[0].getsockname()[1]
        user = self._parts.netloc.rpartition("@")[0]
        return f"postgresql://{user}@127.0.0.1:{port}{self._parts.path}?sslmode=disable"

    @property
    def points_seen(self) -> Counter[Point]:
        """How often each point came, whether or not anything was to be done there; `after` for
        statements that were transactions of their own, and for COMMIT."""
        return self._points.seen

    @property
    def connections(self) -> int:
        """How many the node has, as far as it has told."""
        return len(self._lines)

    def reset(self) -> None:
        """Every connection ends with a reset, in both directions; new ones work."""
        for line in tuple(self._lines):
            line.cut(reset=True)

    def strand(self) -> None:
        """Who is connected now hears nothing more, and is not told; new connections work."""
        for line in self._lines:
            line.stranded = True

    def fall_silent(self, *ways: Way) -> None:
        """From now on nothing passes these ways, or either, and nothing is closed: a black hole."""
        self._silent |= frozenset(ways) or BOTH_WAYS
        for line in self._lines:
            self._silence(line)

    def speak(self) -> None:
        """The end of a silence. As over TCP, what was said in it arrives now, if its connection
        has not been given up."""
        self._silent = frozenset()
        for line in tuple(self._lines):
            line.to_server.go_on("silent")
            line.to_client.go_on("silent")

    def slow(self, seconds: float, fraction: Callable[[], float] = random_fraction) -> None:
        """Everything takes between half as long and one and a half times as long, each way; 0 ends
        it. Chance comes from `fraction`, from 0 up to 1."""
        self._slow_seconds, self._fraction = seconds, fraction

    def at_point(
        self, point: Point, deed: Callable[[], None] = do_nothing, *, cut: bool = False
    ) -> Strike:
        """Do it once, when this node's next such statement comes to that point. What was about to
        pass then passes, unless the deed or `cut` has ended the connection: who kills a node
        `before` a statement that shall not arrive any more says `cut`."""
        point = point._replace(statement=file_name(point.statement))
        strike = Strike(point, deed, cut=cut)
        self._points.wait_for(strike)
        return strike

    def lose_next_commit_answer(self, statement: str = "commit") -> Strike:
        """The server commits, alone or with its transaction, what this statement did; the
        connection ends before the node hears of it."""
        return self.at_point(Point("after", statement), cut=True)

    def cut_at(self, words: bytes, *, deliver: bool) -> Strike:
        """End the connection at the next statement whose text or arguments hold `words`: before
        it arrives, or (`deliver`) after it was committed, so that only the answer is lost."""
        return self.at_point(Point("after" if deliver else "before", words=words), cut=True)

    def forget_points(self) -> None:
        """What has not come to its point yet is not done any more."""
        self._points.forget()
        for line in self._lines:
            line.forget_strikes()

    def heal(self) -> None:
        """The end of all faults; stranded connections stay so."""
        self.forget_points()
        self.slow(0)
        self.speak()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: self._accept().client, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        if self._listener is not None:
            self._listener.close()
        for line in tuple(self._lines):
            line.cut()
        for task in self._tasks:
            task.cancel()
        # The block's own error stays itself; only a cancellation is the group's to understand.
        ours = (kind, error, trace) if kind is asyncio.CancelledError else (None, None, None)
        await self._group.__aexit__(*ours)

    def _accept(self) -> Line:
        line = Line(self._house)
        self._lines.add(line)
        self._silence(line)
        return line

    def _silence(self, line: Line) -> None:
        if "to server" in self._silent:
            line.to_server.wait("silent")
        if "to client" in self._silent:
            line.to_client.wait("silent")

    def _leave(self, line: Line) -> None:
        self._lines.discard(line)

    def _reach(self, line: Line) -> None:
        if self._is_over:
            line.cut()
        else:
            self._spawn(self._connect(line))

    async def _connect(self, line: Line) -> None:
        loop = asyncio.get_running_loop()
        options = parse_qs(self._parts.query)
        host = options.get("host", [self._parts.hostname or "127.0.0.1"])[0]
        port = int(options.get("port", [self._parts.port or POSTGRES_PORT])[0])
        try:
            if host.startswith("/"):
                path = f"{host}/.s.PGSQL.{port}"
                await loop.create_unix_connection(lambda: line.server, path)
            else:
                await loop.create_connection(lambda: line.server, host, port)
        except OSError:
            line.cut()
        else:
            line.reached()

    def _slow_down(self, flow: Flow) -> None:
        if self._slow_seconds:
            flow.wait("slow")
            self._spawn(self._go_on_later(flow, self._slow_seconds * (0.5 + self._fraction())))

    async def _go_on_later(self, flow: Flow, seconds: float) -> None:
        await self._clock.sleep(seconds)
        flow.go_on("slow")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
