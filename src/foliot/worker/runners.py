"""One runner out of several executors, each for one type of target."""

from collections.abc import Awaitable, Mapping
from uuid import UUID

from foliot.core.model import TargetType
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.tasks import Ended, Executor, HandedBack, Reporter, Task, already


class Runners:
    """`handler_runner` is None where the worker was given no module."""

    def __init__(
        self, handler_runner: HandlerRunner | None, others: Mapping[TargetType, Executor]
    ) -> None:
        self._handler_runner = handler_runner
        self._executors = dict(others)
        if handler_runner is not None:
            self._executors[TargetType.HANDLER] = handler_runner

    @property
    def target_types(self) -> frozenset[TargetType]:
        return frozenset(self._executors)

    @property
    def handlers(self) -> frozenset[str]:
        return frozenset() if self._handler_runner is None else self._handler_runner.handlers

    async def start(self) -> None:
        for executor in self._executors.values():
            await executor.start()

    def run(self, task: Task, reporter: Reporter) -> Awaitable[Ended]:
        executor = self._executors.get(task.target_type)
        if executor is None:
            return already(HandedBack(f"this worker runs no {task.target_type} targets"))
        return executor.run(task, reporter)

    def cancel(self, execution_id: UUID, reason: str) -> None:
        """Asked of all: only one of them holds it."""
        for executor in self._executors.values():
            executor.cancel(execution_id, reason)

    async def close(self, *, grace_seconds: float) -> None:
        for executor in self._executors.values():
            await executor.close(grace_seconds=grace_seconds)
