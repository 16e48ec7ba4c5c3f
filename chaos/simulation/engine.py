"""Virtual time: what happens next comes from a queue, and processes wait in it for their turn.

A process is a coroutine of the product. It stops where it sleeps or asks the database, and goes on
when the time or the answer comes: later, if its node stands still, and never, if it is dead.
"""

import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from random import Random
from typing import Any, Final
from uuid import UUID

from foliot.core.errors import FoliotError
from foliot.runtime.loop import failure_pause_seconds

BEGAN: Final = datetime(2026, 3, 29, 0, 59, 30, tzinfo=UTC)
# What is shown of a run that went wrong.
STORY_MAX: Final = 60

Done = Callable[[Any, FoliotError | None], None]


class Violation(AssertionError):
    """Something happened that must never happen."""


@dataclass(slots=True)
class Rest:
    """Until so many seconds have passed."""

    seconds: float


@types.coroutine
def wait_for(what: object) -> Generator[object, Any, Any]:
    """Where a process stops; what it goes on with is up to whoever runs it."""
    return (yield what)


class Node:
    """One process of the product, as its clock and its network know it.

    Its monotonic clock began at some other moment than everybody's, and stands still while the
    machine is suspended. Its wall clock is wrong; nothing that is right asks it.
    """

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.identity: UUID | None = None
        self.is_alive = True
        self.frozen_until = 0.0
        self.cut_until = 0.0
        self.disturbed_until = float("-inf")
        self.processes: dict[Process, None] = {}
        self.wall_error_seconds = world.chance.uniform(-300.0, 300.0)
        self._offset = world.chance.uniform(0.0, 1e5)

    def monotonic(self) -> float:
        return self.world.now + self._offset

    def wall(self) -> datetime:
        """What time this node would say it is."""
        return self.world.moment + timedelta(seconds=self.wall_error_seconds)

    async def sleep(self, seconds: float) -> None:
        await wait_for(Rest(seconds))

    def freeze(self, seconds: float) -> None:
        """It is stopped, and hears everything later."""
        self.frozen_until = max(self.frozen_until, self.world.now + seconds)
        self.disturb(self.frozen_until)

    def suspend(self, seconds: float) -> None:
        """Its machine sleeps: it does not even feel the time pass."""
        self.freeze(seconds)
        self._offset -= seconds

    def cut(self, seconds: float) -> None:
        """Nothing it sends gets anywhere."""
        self.cut_until = max(self.cut_until, self.world.now + seconds)
        self.disturb(self.cut_until)

    def disturb(self, until: float) -> None:
        """Something happens to this node and not to all: others may have reason to miss it."""
        self.disturbed_until = max(self.disturbed_until, until)

    def die(self) -> None:
        """At once, wherever it is."""
        self.is_alive = False
        for process in tuple(self.processes):
            process.end()

    def stirred(self) -> None:
        """One of its processes has made a step."""


class Process:
    """A coroutine under way. `turn` tells what it waits for from what it waited for before."""

    __slots__ = ("done", "is_ended", "node", "turn", "work")

    def __init__(self, node: Node, work: Coroutine[Any, Any, Any], done: Done | None) -> None:
        self.node = node
        self.work = work
        self.done = done
        self.turn = 0
        self.is_ended = False

    def end(self) -> None:
        """Before it is done; what it holds is let go."""
        self.is_ended = True
        self.node.processes.pop(self, None)
        self.work.close()


class World:
    """`send` takes what a process asks of the database."""

    def __init__(self, number: int, say: Callable[[str], None] | None = None) -> None:
        self.chance = Random(number)  # noqa: S311 - it must be the same each time
        self.now = 0.0
        self.events = 0
        self.is_over = False
        self.send: Callable[[Process, Any], None] = lambda *_: None
        self.story: deque[tuple[float, str, str]] = deque(maxlen=STORY_MAX)
        self._say = say
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0

    @property
    def moment(self) -> datetime:
        """By the database's clock, which is the only right one."""
        return BEGAN + timedelta(seconds=self.now)

    def tell(self, who: str, what: str) -> None:
        self.story.append((self.now, who, what))
        if self._say is not None:
            self._say(f"{self.now:8.3f}  {who:12} {what}")

    def at(self, moment: float, deed: Callable[..., None], *arguments: object) -> None:
        self._number += 1
        heappush(self._queue, (moment, self._number, deed, arguments))

    def run(self) -> None:
        """Event after event until it is over."""
        queue = self._queue
        while queue and not self.is_over:
            self.now, _, deed, arguments = heappop(queue)
            self.events += 1
            deed(*arguments)

    def spawn(
        self, node: Node, work: Coroutine[Any, Any, Any], done: Done | None = None
    ) -> Process:
        process = Process(node, work, done)
        node.processes[process] = None
        self.at(self.now, self.deliver, process, 0, None, None)
        return process

    def start(self, node: Node, work: Coroutine[Any, Any, Any], done: Done) -> None:
        """The same at once, where no other process is in the middle of a step."""
        process = Process(node, work, done)
        node.processes[process] = None
        self.deliver(process, 0, None, None)

    def wake(self, process: Process) -> None:
        """It rests no longer."""
        if not process.is_ended:
            self.at(self.now, self.deliver, process, process.turn, None, None)

    def deliver(self, process: Process, turn: int, answer: object, error: Exception | None) -> None:
        node = process.node
        if process.is_ended or process.turn != turn:
            return
        if node.frozen_until > self.now:
            self.at(node.frozen_until, self.deliver, process, turn, answer, error)
            return
        process.turn += 1
        self._step(process, answer, error)
        node.stirred()

    def _step(self, process: Process, answer: object, error: Exception | None) -> None:
        work, result, failure = process.work, None, None
        try:
            what = work.send(answer) if error is None else work.throw(error)
            while isinstance(what, Rest) and what.seconds <= 0:
                what = work.send(None)
        except StopIteration as stop:
            result = stop.value
        except FoliotError as raised:
            failure = raised
        else:
            if isinstance(what, Rest):
                self.at(self.now + what.seconds, self.deliver, process, process.turn, None, None)
            else:
                self.send(process, what)
            return
        process.is_ended = True
        process.node.processes.pop(process, None)
        if process.done is not None:
            process.done(result, failure)


class Loop:
    """Passes of one trade, with a pause after each, as `runtime.loop.repeat` has them."""

    def __init__(
        self,
        node: Node,
        run_once: Callable[[], Coroutine[Any, Any, Any] | None],
        pause: Callable[[], float],
    ) -> None:
        self.is_stopped = False
        self._node = node
        self._run_once = run_once
        self._pause = pause
        self._failures = 0

    def start(self, within_seconds: float = 0.0) -> None:
        world = self._node.world
        world.at(world.now + within_seconds * world.chance.random(), self._begin)

    def _begin(self) -> None:
        """None instead of a pass: there is nothing that it could find."""
        if not self._node.is_alive or self.is_stopped:
            return
        world = self._node.world
        if self._node.frozen_until > world.now:
            world.at(self._node.frozen_until, self._begin)
            return
        work = self._run_once()
        if work is None:
            self._done(None, None)
        else:
            world.start(self._node, work, self._done)

    def _done(self, result: object, failure: FoliotError | None) -> None:
        del result
        world = self._node.world
        self._failures = self._failures + 1 if failure is not None else 0
        pause = self._pause() if failure is None else failure_pause_seconds(self._failures)
        world.at(world.now + pause * (1 + 0.1 * world.chance.random()), self._begin)
