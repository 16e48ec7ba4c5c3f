"""Between a node and the database: questions arrive late, twice as late, or never, and so do the
answers.

Each question is one commit, done whole when it arrives. A client that does not get its answer in
time is told that nobody knows, and the question may arrive long after that. Where a transaction has
several statements, what it changes comes about with its commit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from chaos.simulation.engine import Node, Process, World
from foliot.core.errors import FoliotError
from foliot.store.errors import CommitUnknown, DatabaseUnreachable, TransactionConflict

URL: Final = "postgresql://simulated/foliot"
WAY_SECONDS: Final = 0.02
# How long a client waits for an answer.
PATIENCE_SECONDS: Final = 6.0
LATE_SECONDS: Final = 20.0
_WHY: Final = "57014"  # the statement took too long


@dataclass(slots=True)
class Ask:
    """A question to the database. `commit` is what it does there. `changes`: it may write.
    `is_final`: if the answer is lost, nobody knows whether it was done."""

    name: str
    commit: Callable[[], Any]
    changes: bool = True
    is_final: bool = True


@dataclass(frozen=True, slots=True)
class Weather:
    """How often, of all questions, one is lost on its way, comes late, and so on."""

    lost: float = 0.0
    late: float = 0.0
    unanswered: float = 0.0
    conflict: float = 0.0  # undone by the server, because others were in the way


CALM: Final = Weather()


class Network:
    """`check` is called after every commit that may have changed something."""

    def __init__(self, world: World, check: Callable[[], None]) -> None:
        self._world = world
        self._check = check
        self.weather = CALM
        self.commits = 0
        self.down_until = 0.0
        self.stalled_until = 0.0

    def send(self, process: Process, ask: Ask) -> None:
        world, node = self._world, process.node
        now, chance = world.now, world.chance
        if node.cut_until > now:
            heard = now + chance.uniform(0.1, PATIENCE_SECONDS)
            self._leave_unanswered(process, process.turn, ask, heard)
            return
        way = 0.001 + WAY_SECONDS * chance.random()
        drawn, weather = chance.random(), self.weather
        answered = True
        if drawn < weather.lost:
            world.tell(node.name, f"{ask.name} is lost on its way")
            lost_at = now + chance.uniform(0.05, PATIENCE_SECONDS)
            node.disturb(lost_at)
            self._leave_unanswered(process, process.turn, ask, lost_at)
            return
        if drawn < weather.lost + weather.late:
            way = chance.uniform(0.5, LATE_SECONDS)
            node.disturb(now + way)
            world.tell(node.name, f"{ask.name} comes {way:.1f} s late")
        elif drawn < weather.lost + weather.late + weather.unanswered:
            answered = False
            node.disturb(now + PATIENCE_SECONDS)
            world.tell(node.name, f"{ask.name} stays unanswered")
        if way > PATIENCE_SECONDS:
            self._leave_unanswered(process, process.turn, ask, now + PATIENCE_SECONDS)
        world.at(now + way, self._arrive, process, process.turn, ask, now, answered)

    def _arrive(self, process: Process, turn: int, ask: Ask, sent: float, answered: bool) -> None:
        world = self._world
        now, chance = world.now, world.chance
        if not process.node.is_alive and chance.random() < 0.5:
            return
        if self.down_until > now:
            error = _unanswered(ask) if chance.random() < 0.3 else _unreachable()
            world.at(now + 0.01, world.deliver, process, turn, None, error)
            return
        if self.stalled_until > now:
            if self.stalled_until > sent + PATIENCE_SECONDS:
                heard = max(now, sent + PATIENCE_SECONDS)
                self._leave_unanswered(process, turn, ask, heard)
            world.at(self.stalled_until, self._arrive, process, turn, ask, sent, answered)
            return
        if chance.random() < self.weather.conflict:
            process.node.disturb(now + PATIENCE_SECONDS)
            world.tell(process.node.name, f"{ask.name} is undone")
            answer, failure = None, _undone(ask)
        else:
            answer, failure = self._commit(process.node, ask)
        if answered:
            back = now + 0.001 + WAY_SECONDS * chance.random()
            world.at(back, world.deliver, process, turn, answer, failure)
        else:
            heard = now + chance.uniform(0.01, 2.0)
            world.at(heard, world.deliver, process, turn, None, _unanswered(ask))

    def _commit(self, node: Node, ask: Ask) -> tuple[Any, FoliotError | None]:
        self.commits += 1
        try:
            answer = ask.commit()
        except FoliotError as refused:
            self._world.tell(node.name, f"{ask.name}: {type(refused).__name__}")
            return None, refused
        if ask.changes:
            self._world.tell(node.name, ask.name)
            self._check()
        return answer, None

    def _leave_unanswered(self, process: Process, turn: int, ask: Ask, heard: float) -> None:
        world = self._world
        world.at(heard, world.deliver, process, turn, None, _unanswered(ask))


def _unanswered(ask: Ask) -> FoliotError:
    if ask.is_final:
        return CommitUnknown(URL, "the connection was lost")
    return _unreachable()


def _undone(ask: Ask) -> FoliotError | None:
    return TransactionConflict("others are in the way", _WHY, ask.name)


def _unreachable() -> FoliotError:
    return DatabaseUnreachable(URL, "the connection was lost")
