"""A worker of the simulation: the product's claiming, finishing and heartbeats around a runner that
runs nothing.

As `foliot.worker.life` puts them together. What stands there in terms of an event loop, when a life
begins, is lost, flees or leaves, is written again here; `tests/store/test_worker_life.py` is about
the original. Pulse, heartbeat and the look for cancellations share one loop. When a life is lost,
its claims end at once.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from chaos.simulation.database import SimulatedDatabase
from chaos.simulation.engine import Loop, Node, World
from chaos.simulation.handlers import Handlers, SimulatedRunner
from chaos.simulation.store import SimulatedStore
from foliot.core.errors import FoliotError
from foliot.core.ids import WorkerId
from foliot.core.states import WorkerState
from foliot.store.workers import WorkerProfile, deregister, drain, register
from foliot.worker.attempts import Attempts, Desk
from foliot.worker.claim import Claimer
from foliot.worker.departure import LEAVE_REASON
from foliot.worker.finish import LINGER_SECONDS, VERDICT_SECONDS
from foliot.worker.heartbeat import BEAT_SECONDS, NEWS_SECONDS, Heartbeat
from foliot.worker.pulse import Pulse, was_frozen

CAPACITY: Final = 3
CLAIM_SECONDS: Final = 0.5
TICK_SECONDS: Final = 1.0
LEAVE_SECONDS: Final = 3.0
REGISTER_AGAIN_SECONDS: Final = 0.5


@dataclass(slots=True)
class Life:
    """One identity, from its registration to its end."""

    worker_id: WorkerId
    attempts: Attempts
    claimer: Claimer
    heartbeat: Heartbeat
    pulse: Pulse
    runner: SimulatedRunner
    next_beat: float
    loops: list[Loop]
    is_writing: bool = False
    is_over: bool = False  # nothing new is begun
    is_gone: bool = False  # nothing more is written


class WorkerNode(Node):
    def __init__(
        self, world: World, name: str, store: SimulatedStore, handlers: Handlers, stretch: float
    ) -> None:
        super().__init__(world, name)
        self._store = store
        self._handlers = handlers
        self._stretch = stretch
        self._database = SimulatedDatabase(store, self._set_time)
        self._profile = WorkerProfile(name, name, "0", ["*"], CAPACITY, handlers=["work"])
        self._life: Life | None = None
        self._begin_life()

    def _set_time(self) -> None:
        self._store.now = self.world.moment

    def _begin_life(self) -> None:
        """Under another id each time."""
        if self.is_alive:
            worker_id = WorkerId(UUID(int=self.world.chance.getrandbits(128)))
            self.identity = worker_id
            self._store.bearers[worker_id] = self
            work = register(self._database, worker_id, self._profile)
            self.world.spawn(self, work, lambda _, failure: self._registered(worker_id, failure))

    def _registered(self, worker_id: WorkerId, failure: FoliotError | None) -> None:
        if failure is not None:
            self.world.at(self.world.now + REGISTER_AGAIN_SECONDS, self._begin_life)
            return
        runner = SimulatedRunner(self, self._handlers)
        database = self._database
        desk = Desk(worker_id, CAPACITY, database, database, self)
        attempts = Attempts(desk, runner, lambda work: self._spawn(runner, work))
        claimer = Claimer(database, worker_id, self._profile, attempts, self)
        heartbeat = Heartbeat(database, worker_id, attempts)
        now = self.monotonic()
        life = Life(worker_id, attempts, claimer, heartbeat, Pulse(self), runner, now, [])
        self._life = life
        self._loop(life, lambda: self._claim(life), CLAIM_SECONDS)
        self._loop(life, lambda: self._tick(life), TICK_SECONDS)

    def _loop(
        self, life: Life, run_once: Callable[[], Coroutine[Any, Any, Any] | None], pause: float
    ) -> None:
        loop = Loop(self, run_once, lambda: pause * self._stretch)
        life.loops.append(loop)
        loop.start(pause)

    def _spawn(self, runner: SimulatedRunner, work: Coroutine[Any, Any, None]) -> None:
        under_way = [process for process in runner.processes if not process.is_ended]
        runner.processes = [*under_way, self.world.spawn(self, work)]

    def _claim(self, life: Life) -> Coroutine[Any, Any, Any] | None:
        """Nothing waits for anybody: it would ask in vain."""
        return life.claimer.step() if self._store.waiting() else None

    def _tick(self, life: Life) -> Coroutine[Any, Any, Any] | None:
        if was_frozen(life.pulse.beat()):
            self._lose(life)
            return None
        life.attempts.give_back_overdue()
        is_due = self.monotonic() >= life.next_beat or life.heartbeat.has_news()
        if is_due or life.attempts.hand.running:
            return self._beat(life, is_due=is_due)
        return None

    async def _beat(self, life: Life, *, is_due: bool) -> None:
        if is_due:
            status = (await life.heartbeat.run_once()).status
            life.next_beat = self.monotonic() + BEAT_SECONDS - NEWS_SECONDS
            if status is None:
                self._lose(life)
                return
            if status is WorkerState.DRAINING:
                return
        await life.heartbeat.stop_cancelled()

    def _lose(self, life: Life) -> None:
        if not life.is_over:
            self._end(life)
            self.world.spawn(self, self._flee(life), lambda *_: self._begin_life())

    def _end(self, life: Life) -> None:
        life.is_over = True
        for loop in life.loops:
            loop.is_stopped = True

    async def _flee(self, life: Life) -> None:
        """What it ran is others'. What had ended is offered, fenced."""
        begun = life.attempts.hand.begun()
        life.attempts.abandon()
        life.runner.close_now()
        await self._wait_until_written(life, 1.0)
        await _try(deregister(self._database, life.worker_id, begun))
        life.is_gone = True

    def stop(self) -> None:
        """Nothing more is begun; heartbeats go on."""
        if self._life is not None:
            self._life.attempts.leave()

    async def leave(self) -> None:
        """In order: what runs may finish for a while, and goes back then."""
        life = self._life
        if life is None or life.is_gone:
            return
        attempts = life.attempts
        await _try(drain(self._database, life.worker_id))
        await self.sleep(LEAVE_SECONDS)
        if attempts.hand.running:
            attempts.stop_running(LEAVE_REASON)
            await self.sleep(1.0)
        await self._wait_until_written(life, 5.0)
        self._end(life)
        await _try(deregister(self._database, life.worker_id, attempts.hand.begun()))
        life.is_gone = True

    async def _wait_until_written(self, life: Life, seconds: float) -> None:
        until = self.monotonic() + seconds
        while life.attempts.finisher.unwritten and self.monotonic() < until:
            await self.sleep(0.2)

    def stirred(self) -> None:
        """What ended is written soon."""
        life = self._life
        if life is None or life.is_writing or life.is_gone or not self.is_alive:
            return
        if life.attempts.finisher.unwritten:
            life.is_writing = True
            self.world.at(self.world.now + LINGER_SECONDS, self._write, life)

    def _write(self, life: Life) -> None:
        if self.is_alive and not life.is_gone:
            work = life.attempts.finisher.run_once()
            self.world.start(self, work, lambda _, failure: self._written(life, failure))

    def _written(self, life: Life, failure: FoliotError | None) -> None:
        if life.attempts.finisher.unwritten:
            pause = VERDICT_SECONDS if failure is None else 0.5
            self.world.at(self.world.now + pause, self._write, life)
        else:
            life.is_writing = False


async def _try(work: Coroutine[Any, Any, Any]) -> None:
    """As well as it can be told: silence says the same, later."""
    try:
        await work
    except FoliotError:
        return
