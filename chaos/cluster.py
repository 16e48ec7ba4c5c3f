"""The whole system as processes, each behind a proxy of its own and with a wrong clock: schedulers,
workers and an API, beside them the sink that nobody harms.

Who harms a node takes it first, so that of schedulers and of workers one always is well.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

import foliot
from chaos.facts import Fault
from chaos.node import Birth, Node, NotAtWork, Role
from chaos.record import SINK_FILE, Recorder
from chaos.sink import LISTENING
from foliot.embedded.server import EmbeddedServer
from foliot.runtime.lifeline import Lifeline
from foliot.runtime.listener import PortInUse, listen
from foliot.testing.commands import clean_environ
from foliot.testing.proxy import NodeProxy

ROOT: Final = Path(__file__).parents[1]
# Nodes run the very code that this process does, which may be a copy with a guard taken out.
PRODUCT: Final = Path(foliot.__file__).parents[1]
HANDLERS: Final = Path(__file__).with_name("handlers.py")
CLOCK_OFF_SECONDS: Final = 300
CONCURRENCY: Final = 16
SINK_SECONDS: Final = 10.0
PORTS: Final = (20_000, 30_000)
STARTS_MAX: Final = 3
REVIVE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Size:
    """How many of each; there is one API."""

    schedulers: int = 3
    workers: int = 3


class Cluster:
    """Made by `running`."""

    def __init__(
        self, server: EmbeddedServer, folder: Path, chance: Random, recorder: Recorder
    ) -> None:
        self.server = server
        self.nodes: dict[str, Node] = {}
        self.proxies: dict[str, NodeProxy] = {}
        self.sink = folder / "sink"
        self.target = ""  # where the sink is called over HTTP
        self.key = f"{chance.getrandbits(192):048x}"
        self.port = _free_port(chance)
        self._folder = folder
        self._chance = chance
        self._recorder = recorder
        self._lifeline = Lifeline.open()

    @property
    def url(self) -> str:
        """The API's, which is the same after every start."""
        return f"http://127.0.0.1:{self.port}"

    async def add(self, name: str, role: Role, stack: AsyncExitStack) -> None:
        proxy = await stack.enter_async_context(NodeProxy(self.server.url, name))
        environ = clean_environ(
            FOLIOT_DATABASE_URL=proxy.url,
            FOLIOT_API_KEY=self.key,
            FOLIOT_CALLBACK_ALLOW="loopback",
            CHAOS_SINK=str(self.sink),
            PYTHONPATH=os.pathsep.join([str(PRODUCT), str(ROOT)]),
            PYTHONUNBUFFERED="1",
            PYTHONWARNINGS="default::ResourceWarning",
        )
        birth = Birth(self._arguments(role), environ, self._lifeline.read_fd)
        self.proxies[name] = proxy
        self.nodes[name] = Node(name, role, birth, self._folder / "nodes" / f"{name}.log")

    def _arguments(self, role: Role) -> list[str]:
        if role is Role.SCHEDULER:
            return ["server", "--role", "scheduler"]
        if role is Role.API:
            return ["server", "--role", "api", "--port", str(self.port)]
        concurrency = ["--concurrency", str(CONCURRENCY)]
        return ["worker", "run", str(HANDLERS), "--queues", "*", *concurrency]

    async def start(self, node: Node) -> None:
        """Until it is at work, with a clock that is wrong in a way of its own each time."""
        off = self._chance.randint(-CLOCK_OFF_SECONDS, CLOCK_OFF_SECONDS)
        now, at = time.monotonic(), datetime.now(UTC)
        self._recorder.fault(Fault("clock off", node.name, now, now, at, detail={"seconds": off}))
        for _ in range(STARTS_MAX):
            try:
                await node.start(off)
            except NotAtWork as failure:
                node.note(f"ERROR chaos {failure}")
            else:
                return
        raise RuntimeError(f"{node.name} cannot be started")

    async def revive(self) -> None:
        """Who ends without being told to is a finding, and is started again."""
        while True:
            await asyncio.sleep(REVIVE_SECONDS)
            for node in self.nodes.values():
                if node.has_left:
                    node.note("ERROR chaos it has ended by itself")
                    with self.troubled(node, "ended by itself"):
                        await self.start(node)

    def of_role(self, role: Role) -> list[Node]:
        return [node for node in self.nodes.values() if node.role is role]

    def well(self, role: Role) -> list[Node]:
        return [node for node in self.of_role(role) if node.is_well]

    def spare(self, role: Role) -> list[Node]:
        """Nodes that can be harmed: another of the role is well, of schedulers for a while. There
        is only one API."""
        well = self.well(role)
        if role is Role.API:
            return well
        counted_on = {node for node in well if role is Role.WORKER or node.is_settled}
        return [node for node in well if counted_on - {node}]

    @contextmanager
    def troubled(self, node: Node, trouble: str) -> Iterator[None]:
        """For the length of the block it is nobody to count on."""
        node.trouble = trouble
        try:
            yield
        finally:
            node.trouble = None
            node.unsettle()

    async def restart_database(self, pause_seconds: float) -> None:
        """As after a crash: no farewell, and recovery at the start."""
        self.server.kill()
        await self.server.wait()
        await asyncio.sleep(pause_seconds)
        await self.server.start()

    async def end(self) -> None:
        """All nodes, politely; what they hold is handed back."""
        await asyncio.gather(*(node.end() for node in self.nodes.values()))

    def end_at_once(self) -> None:
        for node in self.nodes.values():
            node.end_at_once()
        self._lifeline.close()


@asynccontextmanager
async def running(
    server: EmbeddedServer, folder: Path, size: Size, chance: Random, recorder: Recorder
) -> AsyncIterator[Cluster]:
    """All of it at work; nothing of it is left at the end."""
    (folder / "nodes").mkdir()
    cluster = Cluster(server, folder, chance, recorder)
    async with AsyncExitStack() as stack:
        cluster.target = await stack.enter_async_context(_sink(cluster.sink, folder / SINK_FILE))
        names = [("api", Role.API)]
        names += [(f"scheduler-{n}", Role.SCHEDULER) for n in range(1, size.schedulers + 1)]
        names += [(f"worker-{n}", Role.WORKER) for n in range(1, size.workers + 1)]
        for name, role in names:
            await cluster.add(name, role, stack)
        stack.callback(cluster.end_at_once)
        await asyncio.gather(*(cluster.start(node) for node in cluster.nodes.values()))
        yield cluster


@asynccontextmanager
async def _sink(socket: Path, file: Path) -> AsyncIterator[str]:
    """Where it is called over HTTP. Ends when its input does, whatever becomes of us."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "chaos.sink",
        str(socket),
        str(file),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=dict(os.environ),
        start_new_session=True,
    )
    if process.stdin is None or process.stdout is None:
        raise AssertionError("asked for above")
    try:
        async with asyncio.timeout(SINK_SECONDS):
            said = await process.stdout.readline()
        word, _, port = said.decode().strip().partition(" ")
        if word != LISTENING:
            raise RuntimeError("the sink does not listen")
        yield f"http://127.0.0.1:{port}"
        if process.returncode is not None:
            raise RuntimeError(f"the sink has ended with {process.returncode}")
    finally:
        process.stdin.close()
        await process.wait()


def _free_port(chance: Random) -> int:
    """One that no outgoing connection is given by the system while the API is down."""
    while True:
        port = chance.randint(*PORTS)
        with suppress(PortInUse):
            listen("127.0.0.1", port).close()
            return port
