"""One run: a world drawn from a number, faults for a while, and then calm until all is settled."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Final

from chaos.simulation.checks import Checks, check_ledger, unfinished
from chaos.simulation.clients import QUEUE, TENANT, Client
from chaos.simulation.engine import Node, Violation, World
from chaos.simulation.handlers import Handlers
from chaos.simulation.nemesis import Nemesis
from chaos.simulation.network import CALM, Network, Weather
from chaos.simulation.scheduler import SchedulerNode
from chaos.simulation.store import SimulatedStore
from chaos.simulation.worker import WorkerNode
from foliot.core.ids import SHARDS, ExecutionId
from foliot.runtime import chance as runtime_chance

SHARDS_MAX: Final = 5
# After the last fault: a lease or a worker's silence, the watch of whoever judges it, and a retry.
CALM_SECONDS_MAX: Final = 90.0
SETTLED_SECONDS: Final = 3.0
UNMOVED_SECONDS: Final = 40.0


class Failed(Exception):
    """What went wrong under which number, and what led to it."""

    def __init__(self, number: int, why: str, story: list[str]) -> None:
        self.number = number
        self.why = why
        told = "\n".join(story)
        super().__init__(
            f"seed {number}: {why}\nthe last events:\n{told}\n"
            f"again: python -m chaos.simulation --seed {number} --trace"
        )


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to; `counts` is what was brought about."""

    events: int
    commits: int
    seconds: float
    counts: Counter[str]


class Simulation:
    def __init__(self, number: int, say: Callable[[str], None] | None = None) -> None:
        self.world = world = World(number, say)
        chance = world.chance
        shards = chance.sample(range(SHARDS), 1 + chance.randrange(SHARDS_MAX))
        self.store = SimulatedStore({(QUEUE, "work"): 1}, {TENANT: 1.0}, shards)
        self.checks = Checks(self.store)
        self.network = Network(world, self.checks.after_commit)
        world.send = self.network.send
        self.handlers = Handlers(chance, self._bring_back)
        self.client = Client(world, self.store)
        self._stretch = chance.uniform(1.5, 2.3)
        self.nodes: list[Node] = []
        self._old: frozenset[ExecutionId] = frozenset()
        self._begin()

    def _begin(self) -> None:
        world, chance = self.world, self.world.chance
        self.client.begin(1 + chance.randrange(4))
        self.handlers.deadly = frozenset(self.client.deadly)
        for number in range(chance.choice([1, 1, 2, 2, 2, 3, 4])):
            self.start(f"scheduler {number + 1}")
        for number in range(chance.choice([1, 1, 2, 2, 3, 4])):
            self.start(f"worker {number + 1}")
        self.calm_at = chance.uniform(14.0, 36.0)
        storm = 0.04 * chance.random() if chance.random() < 0.5 else 0.0
        self.network.weather = Weather(storm / 4, storm / 4, storm / 4, storm / 4)
        nemesis = Nemesis(world, self.network, lambda: self.nodes, self._bring_back)
        nemesis.begin(self.calm_at)
        for _ in range(chance.randrange(14)):
            world.at(chance.uniform(0.0, self.calm_at), self.client.act)
        world.at(self.calm_at, self._calm_down)

    def start(self, name: str) -> None:
        """One more process; under a name that was there before, with an identity that was not."""
        node: Node
        if name.startswith("scheduler"):
            node = SchedulerNode(self.world, name, self.store, self._stretch)
        else:
            node = WorkerNode(self.world, name, self.store, self.handlers, self._stretch)
        self.nodes = [each for each in self.nodes if each.name != name] + [node]
        self.world.tell(name, "starts")

    def _bring_back(self, node: Node) -> None:
        """Somebody looks after those that die by themselves."""
        if node in self.nodes and not node.is_alive:
            self.start(node.name)

    def _calm_down(self) -> None:
        """Everything is healed, and whoever is dead starts anew."""
        world = self.world
        world.tell("nemesis", "is done")
        self.network.weather = CALM
        self.handlers.kills = False
        self._old = frozenset(self.store.live)
        for node in list(self.nodes):
            if not node.is_alive:
                self.start(node.name)
        world.at(world.now + SETTLED_SECONDS, self._look)

    def _look(self) -> None:
        """Whether all is settled; time runs out at last."""
        world = self.world
        self.store.now = world.moment
        left = list(unfinished(self.store, self._old))
        if left and world.now > self.calm_at + CALM_SECONDS_MAX:
            left = list(unfinished(self.store, self._old, UNMOVED_SECONDS))
            if left:
                raise Violation("; ".join(left))
        if left:
            world.at(world.now + 1.0, self._look)
            return
        check_ledger(self.store)
        self.world.is_over = True

    def run(self) -> Result:
        self.world.run()
        return Result(self.world.events, self.network.commits, self.world.now, self.store.counts)


def run_seed(number: int, say: Callable[[str], None] | None = None) -> Result:
    """Raises `Failed` where something is not as it must be."""
    with _same_each_time(number):
        simulation = Simulation(number, say)
        try:
            return simulation.run()
        except Exception as error:
            world = simulation.world
            story = [f"{at:8.3f}  {who:12} {what}" for at, who, what in world.story]
            why = f"at {world.now:.3f} s: {type(error).__name__}: {error}"
            raise Failed(number, why, story) from error
        finally:
            for node in (*simulation.nodes, simulation.client):
                node.die()


@contextmanager
def _same_each_time(number: int) -> Iterator[None]:
    """The product's own chance comes from the number too, and it says nothing meanwhile."""
    generator, disabled = runtime_chance._GENERATOR, logging.root.manager.disable
    setattr(runtime_chance, "_GENERATOR", Random(number))  # noqa: B010, S311 - same each time
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        setattr(runtime_chance, "_GENERATOR", generator)  # noqa: B010 - it is another type
        logging.disable(disabled)
