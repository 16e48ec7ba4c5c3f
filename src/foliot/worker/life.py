"""One life of a worker, from its registration to its end, under an id that nobody had before.

It ends in one of three ways: it leaves when it is told to, it stops at once when it is told
twice, or it finds that the others hold it for dead. In the last case whatever it runs is somebody
else's by now: it ends its processes and begins another life, unless it was told to leave before.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from foliot.core.ids import WorkerId
from foliot.core.states import WorkerState
from foliot.runtime.chance import fresh_id
from foliot.runtime.clock import Clock
from foliot.runtime.loop import failure_pause_seconds, repeat
from foliot.runtime.metrics import ACTIVE_EXECUTIONS, WORKER_CAPACITY
from foliot.runtime.service import until
from foliot.store.errors import DatabaseError, DatabaseRefused
from foliot.store.workers import WorkerProfile, register
from foliot.transport.port import Matter
from foliot.worker.attempts import Attempts, Desk, Spawn
from foliot.worker.claim import Claimer
from foliot.worker.departure import Departure
from foliot.worker.heartbeat import BEAT_SECONDS, CANCEL_SECONDS, NEWS_SECONDS, Heartbeat
from foliot.worker.lines import Lines
from foliot.worker.pulse import PULSE_SECONDS, Pulse, was_frozen
from foliot.worker.tasks import Runner
from foliot.worker.waking import DEAF, Ear

log = logging.getLogger(__name__)

LOGS_SECONDS: Final = 0.25
PROGRESS_SECONDS: Final = 1.0
# However many requests to cancel are hinted at, they are read no more often than this.
CANCEL_REST_SECONDS: Final = 0.02


class Ending(StrEnum):
    LEFT = "LEFT"  # as it was told to: nothing runs any more
    LOST = "LOST"  # dead to the others


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is told from outside: leave when you are done; stop at once."""

    leave: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)


class Life:
    """`profile` lacks the handlers: they are known once the runner has started."""

    def __init__(
        self,
        profile: WorkerProfile,
        lines: Lines,
        runner: Runner,
        clock: Clock,
        orders: Orders,
        ear: Ear = DEAF,
    ) -> None:
        self.worker_id = WorkerId(fresh_id())
        self._profile = profile
        self._lines = lines
        self._runner = runner
        self._clock = clock
        self._orders = orders
        self._ear = ear
        self._over = asyncio.Event()
        self._lost = asyncio.Event()
        self._drained = False  # by an operator

    async def live(self, drain_seconds: float) -> Ending:
        try:
            await until(self._orders.leave, self._begin())
            if self._orders.leave.is_set():
                return Ending.LEFT
            return await self._work(drain_seconds)
        finally:
            await self._runner.close(grace_seconds=0)

    async def _begin(self) -> None:
        await self._runner.start()
        self._profile = replace(
            self._profile,
            handlers=sorted(self._runner.handlers),
            target_types=sorted(self._runner.target_types),
        )
        failures = 0
        while not await self._register():
            failures += 1
            await self._clock.sleep(failure_pause_seconds(failures))
        WORKER_CAPACITY.set(self._profile.capacity)
        log.info(
            "worker %s serves %s: %s%s",
            self.worker_id,
            ", ".join(self._profile.queues),
            ", ".join(self._profile.target_types) or "no target",
            "".join(f" {name}" for name in self._profile.handlers),
        )

    async def _register(self) -> bool:
        """Under another id each time: a registration whose answer was lost dies of silence."""
        self.worker_id = WorkerId(fresh_id())
        try:
            await register(self._lines.beat, self.worker_id, self._profile)
        except DatabaseRefused:
            raise
        except DatabaseError as error:
            log.warning("cannot register yet: %s", error)
            return False
        return True

    async def _work(self, drain_seconds: float) -> Ending:
        desk = Desk(
            self.worker_id,
            self._profile.capacity,
            self._lines.finish,
            self._lines.report,
            self._clock,
            self._ear.transport,
        )
        with ExitStack() as ears:
            await self._work_at(desk, drain_seconds, ears)
        ACTIVE_EXECUTIONS.set_function(lambda: 0)
        return Ending.LEFT if self._is_told() else Ending.LOST

    async def _work_at(self, desk: Desk, drain_seconds: float, ears: ExitStack) -> None:
        async with asyncio.TaskGroup() as group:
            tasks: set[asyncio.Task[None]] = set()

            def spawn(work: Coroutine[Any, Any, None]) -> None:
                task = group.create_task(work)
                tasks.add(task)
                task.add_done_callback(tasks.discard)

            attempts = Attempts(desk, self._runner, spawn)
            self._start_loops(attempts, spawn, ears)
            departure = Departure(self.worker_id, attempts, self._runner, self._lines, self._clock)
            await self._until_over()
            if self._lost.is_set():
                await departure.flee()
            else:
                await departure.leave(drain_seconds, self._orders.stop, self._lost)
            if self._is_told():
                self._lines.cut()
            for task in tuple(tasks):
                task.cancel()

    def _hear(self, claimer: Claimer, heartbeat: Heartbeat, ears: ExitStack) -> None:
        transport = self._ear.transport
        ears.callback(claimer.waking.close)
        ears.callback(transport.subscribe(Matter.WORK, claimer.waking.hear))
        ears.callback(transport.subscribe(Matter.CANCEL, heartbeat.hear_of_cancels))

    def _start_loops(self, attempts: Attempts, spawn: Spawn, ears: ExitStack) -> None:
        lines, clock = self._lines, self._clock
        claimer = Claimer(lines.claim, self.worker_id, self._profile, attempts, clock, self._ear)
        attempts.on_room = claimer.hear_of_room
        heartbeat = Heartbeat(lines.beat, self.worker_id, attempts)
        self._hear(claimer, heartbeat, ears)
        pulse = Pulse(clock)

        next_beat = clock.monotonic()

        async def beat() -> float:
            nonlocal next_beat
            if clock.monotonic() < next_beat and not heartbeat.has_news():
                return NEWS_SECONDS
            status = (await heartbeat.run_once()).status
            if status is None:
                self._lose("its heartbeat was refused: the others hold it for dead")
            elif status is WorkerState.DRAINING:
                self._drained = True
                self._over.set()
            next_beat = clock.monotonic() + BEAT_SECONDS - NEWS_SECONDS
            return NEWS_SECONDS

        async def stop_cancelled() -> float:
            await heartbeat.stop_cancelled()
            return CANCEL_SECONDS

        async def feel_pulse() -> float:
            if was_frozen(gap := pulse.beat()):
                self._lose(f"it stood still for {gap:.0f} s")
            attempts.give_back_overdue()
            return PULSE_SECONDS

        async def write_logs() -> float:
            return 0.0 if await attempts.logs.run_once() else LOGS_SECONDS

        async def write_progress() -> float:
            await attempts.progress.run_once()
            return PROGRESS_SECONDS

        finisher = attempts.finisher
        spawn(repeat("worker claim", claimer.step, clock=clock, hint=claimer.hint))
        spawn(repeat("worker finish", finisher.linger, clock=clock, hint=finisher.hint))
        spawn(repeat("worker heartbeat", beat, clock=clock))
        cancels, rest = heartbeat.cancels, CANCEL_REST_SECONDS
        spawn(repeat("worker cancel", stop_cancelled, clock=clock, hint=cancels, rest_seconds=rest))
        spawn(repeat("worker pulse", feel_pulse, clock=clock))
        spawn(repeat("worker logs", write_logs, clock=clock))
        spawn(repeat("worker progress", write_progress, clock=clock))

    def _is_told(self) -> bool:
        """To leave: it has no other life then."""
        return self._drained or self._orders.leave.is_set()

    def _lose(self, reason: str) -> None:
        if not self._lost.is_set():
            consequence = "leaves at once" if self._is_told() else "begins anew"
            log.warning("worker %s %s: %s", self.worker_id, consequence, reason)
            self._lost.set()
            self._over.set()

    async def _until_over(self) -> None:
        """Told to leave, drained by an operator, or lost."""
        await until(self._orders.leave, _wait(self._over))


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
