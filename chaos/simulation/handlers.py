"""Attempts of the simulation: nothing runs, but it takes its time and ends in every way."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final
from uuid import UUID

from chaos.simulation.engine import Node, Process, Rest, wait_for
from foliot.core.model import ErrorType, Failure, TargetType
from foliot.worker.tasks import (
    Cancelled,
    Crashed,
    Ended,
    Failed,
    Reporter,
    Snoozed,
    Succeeded,
    Task,
)

FAILED: Final = Failed(Failure(ErrorType.HANDLER_ERROR, "no"))
HOPELESS: Final = Failed(Failure(ErrorType.HANDLER_ERROR, "never", do_not_retry=True))
TIMED_OUT: Final = Failed(Failure(ErrorType.TIMEOUT, "too long"))
CRASH: Final = Failure(ErrorType.WORKER_LOST, "its process died")
BEGIN_SECONDS: Final = 0.05
BACK_SECONDS: Final = 3.0


@dataclass(slots=True)
class Handlers:
    """How attempts go. `deadly`: jobs whose handler takes its process down, and with it the whole
    worker, unless it runs alone. `kills`: whether workers may die of it yet."""

    chance: Random
    bring_back: Callable[[Node], None]
    deadly: frozenset[UUID] = frozenset()
    kills: bool = True

    def seconds(self, task: Task) -> float:
        drawn = self.chance.random()
        if drawn < 0.06:
            return task.timeout_seconds + 1.0
        return 5.0 * drawn * drawn

    def end(self, task: Task) -> Ended:
        drawn = self.chance.random()
        if drawn < 0.72:
            return Succeeded()
        if drawn < 0.88:
            return FAILED
        if drawn < 0.90:
            return HOPELESS
        if drawn < 0.95:
            return Snoozed(self.chance.uniform(0.1, 3.0))
        return Crashed(CRASH, alone=task.run_alone)


class SimulatedRunner:
    """As the product's: it is told to cancel, keeps the timeout, and says when one began."""

    def __init__(self, node: Node, handlers: Handlers) -> None:
        self.processes: list[Process] = []
        self._node = node
        self._handlers = handlers
        self._reasons: dict[UUID, str] = {}

    @property
    def handlers(self) -> frozenset[str]:
        return frozenset({"work"})

    @property
    def target_types(self) -> frozenset[TargetType]:
        return frozenset({TargetType.HANDLER})

    async def start(self) -> None:
        """It has nothing to start."""

    async def close(self, *, grace_seconds: float) -> None:
        del grace_seconds
        self.close_now()

    def close_now(self) -> None:
        """No attempt is left; how they ended nobody hears."""
        for process in self.processes:
            if not process.is_ended:
                process.end()

    def cancel(self, execution_id: UUID, reason: str) -> None:
        self._reasons[execution_id] = reason
        for process in self.processes:
            self._node.world.wake(process)

    async def run(self, task: Task, reporter: Reporter) -> Ended:
        handlers, node = self._handlers, self._node
        self._reasons.pop(task.execution_id, None)
        await wait_for(Rest(BEGIN_SECONDS * handlers.chance.random()))
        reporter.started(task)
        if task.job_id in handlers.deadly:
            return await self._die(task)
        lasts = min(handlers.seconds(task), task.timeout_seconds)
        until = node.monotonic() + lasts
        while node.monotonic() < until and task.execution_id not in self._reasons:
            await wait_for(Rest(until - node.monotonic()))
        reason = self._reasons.pop(task.execution_id, None)
        if reason is not None:
            return Cancelled(reason)
        return TIMED_OUT if lasts == task.timeout_seconds else handlers.end(task)

    async def _die(self, task: Task) -> Ended:
        """After it was said that it began, or before."""
        await wait_for(Rest(self._handlers.chance.uniform(0.0, 3.0)))
        if not task.run_alone and self._handlers.kills and self._handlers.chance.random() < 0.7:
            world = self._node.world
            world.tell(self._node.name, "dies of what it runs")
            world.at(world.now, self._node.die)
            world.at(world.now + BACK_SECONDS, self._handlers.bring_back, self._node)
            await wait_for(Rest(1.0))
        return Crashed(CRASH, alone=task.run_alone)
