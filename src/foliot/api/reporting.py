"""What HTTP targets say about executions that they took over: how far they are, how they ended.

The fence that came with the call is the proof: who has a stale one is told that it is superseded.
A target may speak before its worker has written that it took over, so an execution that is still in
its worker's hands is as good: whoever speaks first about an attempt is heard.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from foliot.api.auth import Visit
from foliot.api.patience import insist
from foliot.api.refusals import EndTold, ExecutionNotFound, NotTakenOver
from foliot.api.schemas.executions import CompleteBody, FailBody, ProgressBody
from foliot.core.errors import Superseded
from foliot.core.ids import ExecutionId
from foliot.core.model import Failure, TargetType
from foliot.core.retry import GiveUp, Retry, decide, event_of
from foliot.core.states import TERMINAL, ExecutionEvent, ExecutionState
from foliot.runtime.chance import random_fraction
from foliot.runtime.metrics import EXECUTIONS_FINISHED, EXECUTIONS_SUPERSEDED
from foliot.store.execution_rows import StoredAttempt, StoredExecution, read_executions
from foliot.store.failed_attempts import fails_too_fast
from foliot.store.failure_records import failure_as_json
from foliot.store.finishing import Outcome, finish
from foliot.store.handing_over import HeldExecution, read_held
from foliot.store.progress import Progress, write_progress

# From its worker's hands it goes into its target's once.
_TRIES: Final = 3
# What was asked to be cancelled is CANCELLED, whatever its target says.
_COMPLETED: Final = frozenset({ExecutionState.SUCCEEDED, ExecutionState.CANCELLED})


async def complete(visit: Visit, execution_id: ExecutionId, body: CompleteBody) -> None:
    def judge(held: HeldExecution) -> Outcome:
        return Outcome(
            execution_id,
            body.fence,
            ExecutionEvent.SUCCEED,
            result=body.result,
            started_at=held.claimed_at,
        )

    await _end(visit, execution_id, body.fence, judge)


async def fail(visit: Visit, execution_id: ExecutionId, body: FailBody) -> None:
    """By the job's retry policy, as if a worker had seen it fail."""
    held = await _held(visit, execution_id, body.fence)
    failure = _failure(body)
    poisoned = await fails_too_fast(visit.database, execution_id, held.retry_policy)
    judge = partial(_failed, failure=failure, chance=random_fraction(), poisoned=poisoned)
    await _end(visit, execution_id, body.fence, judge)


async def was_completed(
    visit: Visit, execution_id: ExecutionId, body: CompleteBody, since: datetime
) -> bool:
    """Whether the attempt has ended since then as `complete` ends it."""
    ended = await _ended(visit, execution_id, body.fence, since)
    return ended is not None and ended.status in _COMPLETED


async def was_failed(
    visit: Visit, execution_id: ExecutionId, body: FailBody, since: datetime
) -> bool:
    """Whether the attempt has ended since then with this very failure; others have other words."""
    ended = await _ended(visit, execution_id, body.fence, since)
    return ended is not None and ended.error == failure_as_json(_failure(body))


async def _ended(
    visit: Visit, execution_id: ExecutionId, fence: int, since: datetime
) -> StoredAttempt | None:
    found = await read_executions(visit.database, visit.tenant_id, [execution_id])
    attempts = found[execution_id].attempts if execution_id in found else ()
    for each in attempts:
        if each.fence == fence and each.finished_at is not None and each.finished_at >= since:
            return each
    return None


async def progress(visit: Visit, execution_id: ExecutionId, body: ProgressBody) -> bool:
    """Whether somebody has asked for it to be cancelled."""
    held = await _held(visit, execution_id, body.fence)
    said = Progress(execution_id, body.fence, body.percent, body.message)
    written = await insist(lambda: write_progress(visit.database, held.worker_id, [said]))
    if not written:  # somebody else had it in hand just then, which may have been the last word
        held = await _held(visit, execution_id, body.fence)
    return held.cancel_requested


async def _end(
    visit: Visit,
    execution_id: ExecutionId,
    fence: int,
    judge: Callable[[HeldExecution], Outcome],
) -> None:
    for _ in range(_TRIES):
        held = await _held(visit, execution_id, fence)
        write = partial(finish, visit.database, held.worker_id, [judge(held)])
        written = (await insist(write)).written
        if execution_id in written:
            EXECUTIONS_FINISHED.labels(held.queue, str(written[execution_id])).inc()
            return
    raise Superseded(execution_id, fence)


async def _held(visit: Visit, execution_id: ExecutionId, fence: int) -> HeldExecution:
    """The execution as it runs under this fence, or why nothing can be said about it."""
    held = await read_held(visit.database, visit.tenant_id, execution_id)
    if held is not None and held.fence == fence:
        if held.target_type is not TargetType.HTTP:
            raise NotTakenOver(str(execution_id))
        return held
    found = await read_executions(visit.database, visit.tenant_id, [execution_id])
    execution = found.get(execution_id)
    if execution is None:
        raise ExecutionNotFound(str(execution_id))
    EXECUTIONS_SUPERSEDED.inc()
    if _ended_under(execution, fence):
        raise EndTold(str(execution_id), execution.status)
    raise Superseded(execution_id, fence)


def _ended_under(execution: StoredExecution, fence: int) -> bool:
    return execution.status in TERMINAL and execution.fence == fence


def _failure(body: FailBody) -> Failure:
    return Failure(body.error.type, body.error.message, do_not_retry=not body.retryable)


def _failed(held: HeldExecution, *, failure: Failure, chance: float, poisoned: bool) -> Outcome:
    decision = decide(
        held.retry_policy, held.attempt_number, failure, chance=chance, poisoned=poisoned
    )
    return Outcome(
        held.execution_id,
        held.fence,
        event_of(decision, failure),
        failure=failure,
        started_at=held.claimed_at,
        delay_seconds=decision.delay_seconds if isinstance(decision, Retry) else 0.0,
        dead_letter=decision.reason if isinstance(decision, GiveUp) else None,
    )
