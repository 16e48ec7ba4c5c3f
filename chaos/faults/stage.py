"""What every fault works with: the system, its victims, questions to the database, the record."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, Final, Self

from chaos.asking import Asker
from chaos.cluster import Cluster
from chaos.facts import Fault, Row
from chaos.node import Node, Role
from chaos.record import Recorder
from foliot.testing.points import Point

# A statement that does not come within this time is not waited for any longer.
POINT_SECONDS: Final = 6.0
HELD_SHARDS: Final = "select shard from foliot.shard_leases where owner = $1::uuid order by shard"
HELD_EXECUTIONS: Final = (
    "select id::text, fence from foliot.executions where worker_id = $1::uuid order by id"
)


@dataclass(frozen=True, slots=True)
class Moment:
    """The same on the machine's clock and on the database's: both run on one machine."""

    monotonic: float = field(default_factory=time.monotonic)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class Stage:
    cluster: Cluster
    asker: Asker
    recorder: Recorder
    database_turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # it is down once at a time

    def note(
        self,
        kind: str,
        victim: str,
        began: Moment,
        *,
        point: str | None = None,
        detail: Row | None = None,
        lasted: bool = False,
    ) -> None:
        """Over now if it lasted; otherwise it was over at once."""
        healed = time.monotonic() if lasted else began.monotonic
        fault = Fault(kind, victim, began.monotonic, healed, began.at, point, detail or {})
        self.recorder.fault(fault)

    async def belongings(self, node: Node) -> dict[str, object]:
        """Who it was for the others, and what it held."""
        identity = node.identity
        if node.role is Role.SCHEDULER:
            rows = await self.asker.fetch(HELD_SHARDS, identity)
            return {"id": identity, "shards": [row["shard"] for row in rows]}
        if node.role is Role.WORKER:
            rows = await self.asker.fetch(HELD_EXECUTIONS, identity)
            return {"id": identity, "held": [[row["id"], row["fence"]] for row in rows]}
        return {}


@dataclass(frozen=True, slots=True)
class Strike:
    """A kind of fault: how often it is chosen among all, whether it can be done now, the deed."""

    name: str
    weight: float
    is_possible: Callable[[Stage], bool]
    do: Callable[[Stage, Random], Coroutine[Any, Any, None]]

    @classmethod
    def on(
        cls,
        role: Role,
        name: str,
        weight: float,
        do: Callable[[Stage, Random, Node], Coroutine[Any, Any, None]],
    ) -> Self:
        """One that needs a node of the role that can be spared."""

        async def strike(stage: Stage, chance: Random) -> None:
            await do(stage, chance, chance.choice(stage.cluster.spare(role)))

        return cls(name, weight, lambda stage: bool(stage.cluster.spare(role)), strike)


async def strike_at(
    stage: Stage,
    node: Node,
    point: Point | None,
    deed: Callable[[], None],
    *,
    cut: bool = False,
) -> tuple[Moment, str | None]:
    """Does the deed when the node comes to the point, or after a while without; when and where.
    With `cut` what was about to pass does not."""
    struck: list[Moment] = []

    def strike() -> None:
        struck.append(Moment())
        deed()

    if point is not None:
        proxy = stage.cluster.proxies[node.name]
        waiting = proxy.at_point(point, strike, cut=cut)
        with suppress(TimeoutError):
            async with asyncio.timeout(POINT_SECONDS):
                await waiting.struck.wait()
        proxy.forget_points()
        if struck:
            return struck[0], str(point)
    strike()
    return struck[0], None
