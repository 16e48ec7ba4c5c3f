"""A runner that fills in the secrets of a task, and lets none of them out.

Everything that an attempt says passes here: its lines, its progress, its end. Below it a secret is
a value like any other; above it there are only references and masked words.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from uuid import UUID

from foliot.core.masking import Masker
from foliot.core.model import ErrorType, Failure, TargetType
from foliot.worker.hosts.output import CUT
from foliot.worker.secrets import Ready, SecretReader, asks_for_secrets
from foliot.worker.tasks import (
    READ_WITHIN_SECONDS,
    Cancelled,
    Crashed,
    Ended,
    Failed,
    HandedBack,
    HandedOver,
    Held,
    LogRecord,
    Reporter,
    Runner,
    Snoozed,
    Succeeded,
    Task,
)

log = logging.getLogger(__name__)


class _MaskedReporter:
    """Tells of the task as it was before: with references instead of values."""

    def __init__(self, task: Task, reporter: Reporter, masker: Masker) -> None:
        self.masker = masker
        self._task = task
        self._reporter = reporter

    def started(self, _: Task) -> None:
        self._reporter.started(self._task)

    def logged(self, _: Task, records: Sequence[LogRecord]) -> None:
        masked = [
            replace(record, message=masked_line(self.masker, record.message)) for record in records
        ]
        self._reporter.logged(self._task, masked)

    def progressed(self, _: Task, percent: float | None, message: str) -> None:
        self._reporter.progressed(self._task, percent, self.masker.mask(message))


class DiscreetRunner:
    def __init__(self, runner: Runner, reader: SecretReader) -> None:
        self._runner = runner
        self._reader = reader
        self._reading: dict[UUID, str | None] = {}  # why it is not to begin, if so

    @property
    def target_types(self) -> frozenset[TargetType]:
        return self._runner.target_types

    @property
    def handlers(self) -> frozenset[str]:
        return self._runner.handlers

    async def start(self) -> None:
        await self._runner.start()

    def run(self, task: Task, reporter: Reporter) -> Awaitable[Ended]:
        if asks_for_secrets(task):
            return self._run_with_secrets(task, reporter)
        return self._runner.run(task, reporter)

    async def _run_with_secrets(self, task: Task, reporter: Reporter) -> Ended:
        self._reading[task.execution_id] = None
        try:
            async with asyncio.timeout(READ_WITHIN_SECONDS):
                ready = await self._reader.prepare(task)
        except TimeoutError:
            return HandedBack("its secrets could not be read in time")
        finally:
            reason = self._reading.pop(task.execution_id, None)
        if reason is not None:
            return Cancelled(reason)
        if not isinstance(ready, Ready):
            return ready
        if ready.masker is None:
            return await self._runner.run(task, reporter)
        return await self._run_masked(ready.task, _MaskedReporter(task, reporter, ready.masker))

    async def _run_masked(self, task: Task, reporter: _MaskedReporter) -> Ended:
        try:
            return masked_end(reporter.masker, await self._runner.run(task, reporter))
        except Exception as error:  # noqa: BLE001 - a defect of ours must not tell it either
            words = reporter.masker.mask("".join(traceback.format_exception(error)))
            reason = f"the worker failed: {type(error).__name__}"
        log.error("execution %s could not be run: %s", task.execution_id, words)
        return Failed(Failure(ErrorType.WORKER_LOST, reason))

    def cancel(self, execution_id: UUID, reason: str) -> None:
        if execution_id in self._reading:
            self._reading[execution_id] = reason
        self._runner.cancel(execution_id, reason)

    async def close(self, *, grace_seconds: float) -> None:
        await self._runner.close(grace_seconds=grace_seconds)


def masked_line(masker: Masker, message: str) -> str:
    """The beginning of a value may stand where a line was cut, before the words that say so."""
    text = message.removesuffix(CUT)
    return masker.mask(text) + message[len(text) :]


def masked_end(masker: Masker, ended: Ended) -> Ended:
    mask, mask_json = masker.mask, masker.mask_json
    match ended:
        case Succeeded(result, _, response):
            return replace(ended, result=mask_json(result), response=mask_json(response))
        case Failed(failure, response):
            failure = _masked_failure(masker, failure)
            return replace(ended, failure=failure, response=mask_json(response))
        case Crashed(failure):
            return replace(ended, failure=_masked_failure(masker, failure))
        case Cancelled(reason) | HandedBack(reason) | Held(_, reason):
            return replace(ended, reason=mask(reason))
        case Snoozed() | HandedOver():
            return ended


def _masked_failure(masker: Masker, failure: Failure) -> Failure:
    detail = None if failure.detail is None else masker.mask(failure.detail)
    return replace(failure, message=masker.mask(failure.message), detail=detail)
