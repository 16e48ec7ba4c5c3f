"""What a request has changed is hinted at to those who wait for such things, once it is committed.

Whether they hear it or not: they would find it by themselves, a little later.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from foliot.core.ids import ExecutionId, shard_of
from foliot.core.states import JobState
from foliot.store.cancelling import Cancellation
from foliot.store.enqueuing import Wanted
from foliot.store.job_references import JobReference
from foliot.store.job_rows import StoredJob
from foliot.store.replaying import ReplayReport
from foliot.transport.port import Matter, Publisher

# What is due later is known to the schedulers by then.
NEAR: Final = timedelta(seconds=1)
AT_HAND: Final = timedelta(seconds=0.5)


def tell_of_executions(hints: Publisher, asked: Iterable[tuple[JobReference, Wanted]]) -> None:
    """They were enqueued: to be claimed, to wait for a slot, or to wait for a time that is near."""
    queues: set[str] = set()
    for job, wanted in asked:
        wait = _wait(job, wanted)
        if wait > NEAR:
            continue
        if wait > timedelta(0):
            hints.publish(Matter.RELEASE)
        elif job.limited or wanted.concurrency is not None:
            hints.publish(Matter.ADMIT)
        else:
            queues.add(job.queue)
    if queues:
        hints.publish(Matter.WORK, queues)


def tell_of_replays(hints: Publisher, report: ReplayReport) -> None:
    """They were enqueued. Those that wait for a slot are among them, or not."""
    if report.queues:
        hints.publish(Matter.WORK, report.queues)
    if report.limited:
        hints.publish(Matter.ADMIT)


def _wait(job: JobReference, wanted: Wanted) -> timedelta:
    if wanted.run_at is not None:
        return wanted.run_at - job.now
    return timedelta(seconds=wanted.delay_seconds or 0.0)


def tell_of_job(hints: Publisher, stored: StoredJob) -> None:
    """It was made or changed: it may be due at once."""
    due = stored.next_run_at
    if stored.job.status is JobState.ACTIVE and due is not None and due <= stored.now + AT_HAND:
        hints.publish(Matter.STAGE, [str(shard_of(stored.job.job_id))])


def tell_of_settled_job(hints: Publisher, stored: StoredJob) -> None:
    """The same, where what was due before the change has been fired with it, and parked."""
    hints.publish(Matter.RELEASE)
    tell_of_job(hints, stored)


def tell_of_cancels(hints: Publisher, asked: Mapping[ExecutionId, Cancellation]) -> None:
    """Some run: their workers are to stop them."""
    running = [str(each) for each, answer in asked.items() if answer is Cancellation.ASKED]
    if running:
        hints.publish(Matter.CANCEL, running)
