"""Which changes are hinted at to whom, and by which way a process hears hints."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from foliot.api.hinting import tell_of_cancels, tell_of_executions, tell_of_settled_job
from foliot.core.ids import ExecutionId, JobId, TenantId, shard_of
from foliot.core.limits import key_limit
from foliot.core.model import ConcurrencyLimit, HandlerTarget, RetryPolicy
from foliot.core.states import TERMINAL, ExecutionState
from foliot.runtime.chance import fresh_id
from foliot.settings import Settings
from foliot.store.cancelling import Cancellation
from foliot.store.claiming import Instructions
from foliot.store.enqueuing import Wanted
from foliot.store.job_references import JobReference
from foliot.store.job_rows import StoredJob
from foliot.testing.claimed import a_claimed
from foliot.testing.jobs import new_job
from foliot.testing.loopback import Loopback
from foliot.testing.rows import NOW
from foliot.transport.port import Matter
from foliot.wiring.hints import direct_url
from foliot.worker.telling import matters_of

CLAIMED = a_claimed(
    queue="mail",
    instructions=Instructions(HandlerTarget("work"), RetryPolicy(), 1.0, 1.0, holds_overlaps=True),
    limited=True,
    followed=True,
)
JOB = JobReference(JobId(fresh_id()), "job", ConcurrencyLimit(), None, NOW, "mail", limited=False)
LIMITED = replace(JOB, limited=True)
KEY = key_limit(TenantId(fresh_id()), "k", 1)
MAIL = frozenset({"mail"})
NOBODY: frozenset[str] = frozenset()
SECOND = timedelta(seconds=1)

HERE = "postgresql://u@here/foliot"
STRAIGHT = "postgresql://u@straight/foliot"


@pytest.mark.parametrize(
    ("job", "changes", "told"),
    [
        (JOB, {}, [(Matter.WORK, MAIL)]),
        (JOB, {"run_at": NOW - SECOND}, [(Matter.WORK, MAIL)]),
        (JOB, {"delay_seconds": 0.0}, [(Matter.WORK, MAIL)]),
        (JOB, {"delay_seconds": 0.3}, [(Matter.RELEASE, NOBODY)]),
        (JOB, {"run_at": NOW + SECOND / 2}, [(Matter.RELEASE, NOBODY)]),
        (JOB, {"delay_seconds": 60.0}, []),
        (JOB, {"run_at": NOW + 60 * SECOND}, []),
        (LIMITED, {}, [(Matter.ADMIT, NOBODY)]),
        (JOB, {"concurrency": KEY}, [(Matter.ADMIT, NOBODY)]),
        (LIMITED, {"delay_seconds": 0.3}, [(Matter.RELEASE, NOBODY)]),
    ],
)
def test_what_was_enqueued_is_told_to_those_who_have_to_do_with_it_next(
    job: JobReference, changes: dict[str, Any], told: list[tuple[Matter, frozenset[str]]]
) -> None:
    hints = Loopback()
    tell_of_executions(hints, [(job, Wanted(job.job_id, **changes))])
    assert hints.published == told


def test_a_bulk_is_told_of_once() -> None:
    hints, other = Loopback(), replace(JOB, queue="reports")
    tell_of_executions(hints, [(job, Wanted(job.job_id)) for job in (JOB, JOB, other)])
    assert hints.published == [(Matter.WORK, MAIL | {"reports"})]


def test_what_a_change_has_fired_is_to_be_released() -> None:
    hints, job = Loopback(), new_job()
    due, later = NOW, NOW + SECOND
    settled = StoredJob(job, due, due, NOW, 1, None, NOW, NOW, NOW, NOW, None)
    tell_of_settled_job(hints, replace(settled, next_run_at=later))
    assert hints.published == [(Matter.RELEASE, NOBODY)]
    tell_of_settled_job(hints, settled)
    stage = (Matter.STAGE, {str(shard_of(job.job_id))})
    assert hints.published[1:] == [(Matter.RELEASE, NOBODY), stage]


def test_a_request_to_cancel_is_told_where_something_runs() -> None:
    hints = Loopback()
    one, other, third = (ExecutionId(fresh_id()) for _ in range(3))
    tell_of_cancels(hints, {one: Cancellation.CANCELLED, other: Cancellation.NOT_LIVE})
    assert hints.published == []
    tell_of_cancels(hints, {one: Cancellation.CANCELLED, third: Cancellation.ASKED})
    assert hints.published == [(Matter.CANCEL, frozenset({str(third)}))]


@pytest.mark.parametrize(
    ("settings", "url", "direct"),
    [
        ({"database_url": HERE}, HERE, HERE),
        ({"database_url": HERE, "database_pooler": "transaction"}, HERE, None),
        (
            {
                "database_url": HERE,
                "database_pooler": "transaction",
                "database_direct_url": STRAIGHT,
            },
            HERE,
            STRAIGHT,
        ),
        ({"database_url": HERE, "database_direct_url": STRAIGHT}, HERE, STRAIGHT),
        # The database of a `foliot up` in a folder is another than the one of the settings.
        ({"database_url": HERE, "database_direct_url": STRAIGHT}, "elsewhere", "elsewhere"),
        ({}, "elsewhere", "elsewhere"),
    ],
)
def test_hints_are_heard_by_the_straight_way_if_there_is_one(
    settings: dict[str, Any], url: str, direct: str | None
) -> None:
    assert direct_url(Settings(**settings), url) == direct


@pytest.mark.parametrize("state", ExecutionState)
def test_whoever_waits_for_an_end_hears_of_ends_alone(state: ExecutionState) -> None:
    told = set(matters_of(CLAIMED, state, 0.0))
    if state is ExecutionState.RUNNING:
        assert told == set(), "somebody else has it now"
    elif state in TERMINAL:
        assert told == {Matter.ADMIT, Matter.AFTER, Matter.OVERLAP}
    else:
        assert told == {Matter.ADMIT, Matter.RELEASE}
