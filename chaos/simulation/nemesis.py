"""What goes wrong, and when: drawn at the beginning, some kinds of faults for each world."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from chaos.simulation.engine import Node, World
from chaos.simulation.network import Network
from chaos.simulation.scheduler import SchedulerNode
from chaos.simulation.worker import WorkerNode

FAULTS_MAX: Final = 8
# Most who stand still do so for long enough to be missed.
SECONDS: Final = ((3.0, 8.0, 20.0), (3.0, 20.0, 22.0))


class Kind(StrEnum):
    KILL = "is killed"
    LEAVE = "is told to stop"
    FREEZE = "stands still"
    SUSPEND = "is suspended"
    CUT = "is cut off"
    OUTAGE = "goes down"
    STALL = "answers nobody"


class Nemesis:
    """`bring_back` starts a node again, under a new identity."""

    def __init__(
        self,
        world: World,
        network: Network,
        nodes: Callable[[], Sequence[Node]],
        bring_back: Callable[[Node], None],
    ) -> None:
        self._world = world
        self._network = network
        self._nodes = nodes
        self._bring_back = bring_back
        self._until = 0.0

    def begin(self, until: float) -> None:
        """Few kinds in each world: where everything goes wrong, little is seen to go right."""
        self._until = until
        chance = self._world.chance
        kinds = [kind for kind in Kind if chance.random() < 0.4]
        for _ in range(chance.randrange(1 + FAULTS_MAX) if kinds else 0):
            self._world.at(chance.uniform(0.5, until), self._strike, chance.choice(kinds))

    def _strike(self, kind: Kind) -> None:
        world, chance = self._world, self._world.chance
        seconds = chance.choice(SECONDS[kind is Kind.FREEZE]) * (0.5 + chance.random())
        if kind is not Kind.FREEZE:  # that may last into the calm
            seconds = min(seconds, self._until - world.now)
        if kind in (Kind.OUTAGE, Kind.STALL):
            world.tell("database", f"{kind} for {seconds:.1f} s")
            until = world.now + seconds
            if kind is Kind.OUTAGE:
                self._network.down_until = max(self._network.down_until, until)
            else:
                self._network.stalled_until = max(self._network.stalled_until, until)
            return
        alive = [node for node in self._nodes() if node.is_alive]
        if alive:
            self._hit(chance.choice(alive), kind, seconds)

    def _hit(self, node: Node, kind: Kind, seconds: float) -> None:
        world = self._world
        world.tell(node.name, f"{kind} for {seconds:.1f} s")
        match kind:
            case Kind.KILL:
                node.die()
                world.at(world.now + seconds, self._bring_back, node)
            case Kind.LEAVE if isinstance(node, SchedulerNode | WorkerNode):
                node.stop()
                world.spawn(node, node.leave(), lambda *_: self._gone(node, seconds))
            case Kind.FREEZE:
                node.freeze(seconds)
            case Kind.SUSPEND:
                node.suspend(seconds)
            case _:
                node.cut(seconds)

    def _gone(self, node: Node, seconds: float) -> None:
        """It has left, as well as it could."""
        world = self._world
        world.at(world.now, node.die)
        world.at(world.now + seconds, self._bring_back, node)
