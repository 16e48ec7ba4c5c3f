"""A transport within one process: who publishes is heard at once by everyone on the same loop."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from foliot.transport.message import EVERYTHING
from foliot.transport.port import Hear, Matter


class Loopback:
    """Several processes are several of them with one `wire`."""

    def __init__(self, wire: "list[Loopback] | None" = None) -> None:
        self._wire = [] if wire is None else wire
        self._hears: dict[Matter, list[Hear]] = defaultdict(list)
        self._flows = False
        self.published: list[tuple[Matter, frozenset[str]]] = []

    @property
    def flows(self) -> bool:
        return self._flows

    def publish(self, matter: Matter, names: Iterable[str] = ()) -> None:
        told = frozenset(names)
        self.published.append((matter, told))
        for other in tuple(self._wire):
            other.hear(matter, told)

    def subscribe(self, matter: Matter, hear: Hear) -> Callable[[], None]:
        self._hears[matter].append(hear)
        return lambda: self._hears[matter].remove(hear)

    async def run(self) -> None:
        self.begin()

    def begin(self) -> None:
        """From now on what others publish is heard."""
        self._wire.append(self)
        self._flows = True
        for matter in tuple(self._hears):
            self.hear(matter, EVERYTHING)

    def break_off(self) -> None:
        """From now on nothing is."""
        self._wire.remove(self)
        self._flows = False
        for matter in tuple(self._hears):
            self.hear(matter, EVERYTHING)

    def hear(self, matter: Matter, names: frozenset[str]) -> None:
        for each in tuple(self._hears[matter]):
            each(names)
