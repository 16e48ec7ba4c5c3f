"""The attempts of a worker: begun while there are slots, and judged when they end.

The runner makes an attempt and says how it ended; here that becomes what is written about the
execution. What it says in between (it began, it logs, it makes progress) is heard here too.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.model import ErrorType, Failure
from foliot.core.states import ExecutionState
from foliot.runtime.chance import random_fraction
from foliot.runtime.clock import Clock
from foliot.runtime.metrics import ACTIVE_EXECUTIONS
from foliot.store.claiming import ClaimedExecution
from foliot.store.database import Database
from foliot.store.errors import DatabaseError
from foliot.store.failed_attempts import fails_too_fast
from foliot.store.finishing import Outcome
from foliot.transport.port import SILENCE, Publisher
from foliot.worker import counting
from foliot.worker.appetite import BEGIN_WITHIN_SECONDS, Load, Throughput
from foliot.worker.finish import Finisher, given_back
from foliot.worker.hand import Grip, Hand, Stage
from foliot.worker.logbook import LogBook
from foliot.worker.progress import ProgressBook
from foliot.worker.tasks import Cancelled, Ended, Failed, LogRecord, Runner, Task, already
from foliot.worker.telling import matters_of
from foliot.worker.verdicts import UNREADABLE, End, Facts, judge, policy_of, task_of

log = logging.getLogger(__name__)

CANCEL_REASON: Final = "cancelled on request"
SUPERSEDED_REASON: Final = "superseded: another worker has it"

Spawn = Callable[[Coroutine[Any, Any, None]], object]


@dataclass(frozen=True, slots=True)
class Desk:
    """Where the worker's own parts are: who it is, its lines to the database, its books."""

    worker_id: WorkerId
    capacity: int
    finish_database: Database
    report_database: Database
    clock: Clock
    hints: Publisher = SILENCE


class Attempts:
    """Hears the runner as its Reporter. `spawn` starts a task that belongs to the worker's life."""

    def __init__(self, desk: Desk, runner: Runner, spawn: Spawn) -> None:
        self.hand = Hand()
        ACTIVE_EXECUTIONS.set_function(lambda: self.hand.running)
        self.finisher = Finisher(desk.finish_database, desk.worker_id, self._written, desk.clock)
        self.logs = LogBook(desk.report_database, desk.worker_id)
        self.progress = ProgressBook(desk.report_database, desk.worker_id)
        self.on_room: Callable[[], None] = lambda: None
        self._desk = desk
        self._runner = runner
        self._spawn = spawn
        self._throughput = Throughput()
        self._given_up: frozenset[tuple[ExecutionId, int]] = frozenset()
        self._leaving = False
        self._abandoned = False

    @property
    def is_leaving(self) -> bool:
        return self._leaving

    @property
    def is_abandoned(self) -> bool:
        return self._abandoned

    def load(self) -> Load:
        return Load(
            capacity=self._desk.capacity,
            running=self.hand.running,
            waiting=self.hand.waiting,
            unwritten=self.finisher.unwritten,
            per_second=self._throughput.per_second(self._desk.clock.monotonic()),
        )

    def expect(self, claims: Iterable[tuple[ExecutionId, int]]) -> None:
        """These were claimed and are being read; none when that is over."""
        self.hand.forget_reading()
        self.hand.read(claims)

    def give_up(self, claims: frozenset[tuple[ExecutionId, int]]) -> None:
        """The answer to these claims was lost, and they go back. Should it come after all, they do
        not begin."""
        self._given_up = claims

    def accept(self, batch: Sequence[ClaimedExecution], taken_at: float) -> None:
        for claimed in batch:
            if (claimed.execution_id, claimed.fence) in self._given_up:
                continue
            grip = self.hand.take(claimed, taken_at)
            if claimed.cancel_requested_at is not None:
                self.cancel(grip)
        self.start_waiting()

    def start_waiting(self) -> None:
        """Begins what has waited longest, as far as there are slots. What lay here too long, as
        after a freeze, may have begun elsewhere: it is given back."""
        if not self.hand.is_anyone_waiting:
            return
        if self._leaving:
            self.give_back_waiting()
        self.give_back_overdue()
        while self.hand.running < self._desk.capacity and (grip := self.hand.begin_next()):
            self._begin(grip)

    def give_back_overdue(self) -> int:
        """What has waited here for a second may begin sooner elsewhere."""
        return self.give_back_waiting(self._desk.clock.monotonic() - BEGIN_WITHIN_SECONDS)

    def give_back_waiting(self, taken_before: float | None = None) -> int:
        grips = self.hand.end_waiting(taken_before)
        for grip in grips:
            self.finisher.put(given_back(grip.execution_id, grip.fence))
        return len(grips)

    def cancel(self, grip: Grip) -> None:
        """Somebody asked for it: at once where it has not begun."""
        if grip.cancel_asked or grip.stage is Stage.ENDED:
            return
        grip.cancel_asked = True
        if grip.stage is Stage.RUNNING:
            self._runner.cancel(grip.execution_id, CANCEL_REASON)
        else:
            self._end(grip, Cancelled(CANCEL_REASON))

    def let_go(self, grip: Grip) -> None:
        """The rows name another: what still runs here is nobody's."""
        if grip.stage is Stage.RUNNING:
            self._runner.cancel(grip.execution_id, SUPERSEDED_REASON)
        elif grip.stage is Stage.WAITING:
            self.hand.drop(grip.execution_id, grip.fence)

    def leave(self) -> None:
        """Nothing begins from now on."""
        self._leaving = True
        self.give_back_waiting()

    def stop_running(self, reason: str) -> None:
        """For the worker's own sake: however they end from now on, they go back to the queue."""
        for grip in self.hand:
            if grip.stage is Stage.RUNNING:
                grip.is_stopped = True
                self._runner.cancel(grip.execution_id, reason)

    def abandon(self) -> None:
        """The worker is dead to everyone else: what ends from now on is not written."""
        self._abandoned = True

    def started(self, task: Task) -> None:
        grip = self.hand.find(ExecutionId(task.execution_id), task.fence)
        if grip is not None and grip.begun_at is None:
            grip.begun_at = self._desk.clock.monotonic()
            counting.begun(grip)

    def logged(self, task: Task, records: Sequence[LogRecord]) -> None:
        grip = self.hand.find(ExecutionId(task.execution_id), task.fence)
        if grip is not None:
            self.logs.add(grip, records)

    def progressed(self, task: Task, percent: float | None, message: str) -> None:
        grip = self.hand.find(ExecutionId(task.execution_id), task.fence)
        if grip is not None:
            self.progress.note(grip, percent, message)

    def _begin(self, grip: Grip) -> None:
        """Without a task of its own where the runner knows the end as a future: a task for each
        attempt took a fifth of the worker's time."""
        ending = self._run(task_of(grip.claimed))
        if isinstance(ending, asyncio.Future):
            ending.add_done_callback(partial(self._hear_end, grip))
        else:
            self._spawn(self._serve(grip, ending))

    def _run(self, task: Task | None) -> Awaitable[Ended]:
        if task is None:
            return already(Failed(UNREADABLE))
        try:
            return self._runner.run(task, self)
        except Exception as error:  # a defect of ours must not pass for the handler's
            log.exception("execution %s could not be run", task.execution_id)
            return already(Failed(_defect(error)))

    def _hear_end(self, grip: Grip, ending: "asyncio.Future[Ended]") -> None:
        if ending.cancelled():  # the worker's life is over
            return
        if ending.exception() is None and not isinstance(ending.result(), Failed):
            self._end(grip, ending.result())
            self._go_on()
        else:
            self._spawn(self._serve(grip, ending))

    async def _serve(self, grip: Grip, ending: Awaitable[Ended]) -> None:
        try:
            ended = await ending
        except Exception as error:
            log.exception("execution %s could not be run", grip.execution_id)
            ended = Failed(_defect(error))
        poisoned = isinstance(ended, Failed) and await self._is_poisoned(grip)
        self._end(grip, ended, poisoned=poisoned)
        self._go_on()

    def _go_on(self) -> None:
        """A slot is free."""
        self.start_waiting()
        self.on_room()

    async def _is_poisoned(self, grip: Grip) -> bool:
        """Asked of one that has failed."""
        policy = policy_of(grip.claimed.instructions)
        if policy.poison_window_seconds is None:
            return False
        try:
            return await fails_too_fast(self._desk.report_database, grip.execution_id, policy)
        except DatabaseError:  # it will be asked again after the next failure
            return False
        except Exception:  # a defect of ours must not end the worker
            log.exception("the failures of execution %s cannot be counted", grip.execution_id)
            return False

    def _end(self, grip: Grip, ended: Ended, *, poisoned: bool = False) -> None:
        now = self._desk.clock.monotonic()
        facts = Facts(
            self._desk.worker_id,
            random_fraction() if isinstance(ended, Failed) else 0.0,
            grip.started_at,
            grip.cancel_asked,
            self._leaving,
            grip.is_stopped,
            poisoned,
        )
        self.hand.end(grip)
        self._throughput.count(now)
        self.progress.forget(grip)
        self.logs.end(grip, now)
        counting.ended(grip, ended, now)
        if not self._abandoned:
            self.finisher.put(_judged(grip, ended, facts))

    def _written(self, end: End, state: ExecutionState | None) -> None:
        grip = self.hand.find(end.execution_id, end.fence)
        self.hand.drop(end.execution_id, end.fence)
        counting.written(grip, end, state)
        if grip is not None and state is not None:
            delay_seconds = end.delay_seconds if isinstance(end, Outcome) else 0.0
            for matter in matters_of(grip.claimed, state, delay_seconds):
                self._desk.hints.publish(matter)


def _defect(error: Exception) -> Failure:
    return Failure(ErrorType.WORKER_LOST, f"the worker failed: {type(error).__name__}")


def _judged(grip: Grip, ended: Ended, facts: Facts) -> End:
    """Where the rules fail over one execution, that one has failed, and not the worker."""
    try:
        return judge(grip.claimed, ended, facts)
    except Exception:
        log.exception("the end of execution %s cannot be judged", grip.execution_id)
        return judge(grip.claimed, Failed(UNREADABLE), facts)
