"""Who asks: several clients at once, each with chances of its own, and what they know together."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final
from uuid import UUID

from chaos.workload.calling import Line, Reply, Request
from chaos.workload.kinds import CHANGED, Body
from chaos.workload.plan import Plan

TRIES: Final = 25
REMEMBERED: Final = 300


@dataclass(slots=True)
class Known:
    """What the clients of a run know of it. `braked`: nothing more may be asked for."""

    plan: Plan
    ids: dict[str, UUID] = field(default_factory=dict)
    bodies: dict[str, Body] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)
    passing: dict[str, UUID] = field(default_factory=dict)
    recent: deque[UUID] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    braked: bool = False

    def learn(self, name: str, job_id: UUID, body: Body) -> None:
        """A job of the plan is there."""
        self.ids[name], self.bodies[name] = job_id, body
        if CHANGED in body.get("tags", ()):
            self.changed.append(name)


class Client:
    """One of several; what it does next is for its own chance to say."""

    def __init__(self, number: int, line: Line, known: Known) -> None:
        self.number, self.line, self.known = number, line, known
        self.chance: Random = known.plan.chance(f"client {number}")
        self._count = 0

    def key(self) -> str:
        """A fresh idempotency key."""
        return f"{self.known.plan.seed}-{self.fresh()}"

    def fresh(self) -> str:
        """A number that nobody else has, told apart by its client."""
        self._count += 1
        return f"{self.number}x{self._count:05}"

    def one_in(self, times: int) -> bool:
        return self.chance.randrange(times) == 0

    def weighted(self, weights: dict[str, int]) -> str:
        return self.chance.choices([*weights], [*weights.values()])[0]

    async def rest(self, low: float, high: float) -> None:
        await self.line.rest(self.chance.uniform(low, high))

    async def insist(self, request: Request) -> Reply:
        """Now and then a client gives up at once, and never learns what became of it."""
        tries = 1 if self.one_in(10) else TRIES
        reply = await self.line.insist(request, self.chance, tries)
        self._remember(request, reply)
        return reply

    def _remember(self, request: Request, reply: Reply) -> None:
        if request.method == "POST" and reply.is_good and reply.body:
            items: Sequence[Body] = reply.body.get("items", [reply.body])
            made = [one["execution_id"] for one in items if "execution_id" in one]
            self.known.recent += map(UUID, made)
