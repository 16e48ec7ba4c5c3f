"""What stands in the way of an execution: in which order it is told, and in which words."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.core.explain import explain
from foliot.core.explain_running import explain_end
from foliot.core.explanation import (
    Code,
    Ending,
    Facts,
    Hold,
    Holder,
    Keeper,
    LimitUse,
    QueueState,
    Reason,
    SchedulerSigns,
)
from foliot.core.ids import ExecutionId, JobId, TenantId, WorkerId
from foliot.core.reason_words import error_words, executions, span
from foliot.core.serving import NOBODY, Lane, Staff, Workforce
from foliot.core.states import ExecutionState, JobState, WorkerState

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
TENANT, JOB = TenantId(UUID(int=1)), JobId(UUID(int=2))
LANE = Lane("default", None, (), "HANDLER", "work")
FREE = Workforce((Staff(2, 8, 3, ("default",), None, (), ("HANDLER",), ("work",)),))
BUSY = Workforce((Staff(2, 8, 8, ("default",), None, (), ("HANDLER",), ("work",)),))
QUEUED = Facts(
    moment=NOW,
    execution_id=ExecutionId(UUID(int=3)),
    tenant_id=TENANT,
    job_id=JOB,
    job_name="mail",
    status=ExecutionState.QUEUED,
    available_at=NOW - timedelta(seconds=1),
    attempt_number=0,
    max_attempts=4,
    timeout_seconds=60.0,
    ready=True,
    job_status=JobState.ACTIVE,
    lane=LANE,
    workers=FREE,
    schedulers=SchedulerSigns(1, NOW),
)
DUE = replace(QUEUED, status=ExecutionState.PENDING, ready=False)
LATER = replace(DUE, available_at=NOW + timedelta(hours=3))
LIMITED = replace(DUE, status=ExecutionState.WAITING, hold=Hold.LIMIT)
SECOND = Holder(ExecutionId(UUID(int=4)), "mail", ExecutionState.RUNNING, NOW, "anna")
FULL_JOB = LimitUse(f"job:{JOB}", 1, 1, None, None, 0, None, (SECOND,))
FULL_KEY = LimitUse(f"key:{TENANT}:user:7", 2, 2, None, None, 0, None)
FULL_RATE = LimitUse(f"tenant:{TENANT}", None, 0, 5, 60.0, 5, NOW + timedelta(seconds=9))
PAUSED = QueueState(paused_at=NOW, note="a look inside")
NO_SCHEDULER = SchedulerSigns(0, NOW - timedelta(seconds=90))


def told(facts: Facts) -> Sequence[Reason]:
    return explain(facts).reasons


@pytest.mark.parametrize(
    ("facts", "codes"),
    [
        (QUEUED, "IN_LINE"),
        (replace(QUEUED, ahead=3), "IN_LINE"),
        (replace(QUEUED, workers=BUSY), "WORKERS_FULL"),
        (replace(QUEUED, workers=BUSY, ahead=3), "WORKERS_FULL IN_LINE"),
        (replace(QUEUED, workers=NOBODY), "NO_WORKER"),
        (replace(QUEUED, workers=NOBODY, ahead=3), "NO_WORKER IN_LINE"),
        (replace(QUEUED, queue=QueueState()), "IN_LINE"),
        (replace(QUEUED, queue=QueueState(at_most=2, used=1)), "IN_LINE"),
        (replace(QUEUED, queue=QueueState(at_most=2, used=2)), "CONCURRENCY"),
        (
            replace(QUEUED, queue=replace(PAUSED, at_most=2, used=2), workers=BUSY, ahead=1),
            "QUEUE_PAUSED CONCURRENCY WORKERS_FULL IN_LINE",
        ),
        (replace(QUEUED, job_status=JobState.DELETED, queue=PAUSED), "JOB_DELETED QUEUE_PAUSED"),
        # What has a rank needs no scheduler, and its limits have let it go.
        (replace(QUEUED, schedulers=NO_SCHEDULER, limits=(FULL_JOB,)), "IN_LINE"),
        (DUE, "NOT_RELEASED"),
        (replace(DUE, limits=(FULL_JOB,)), "CONCURRENCY"),
        (replace(DUE, queue=PAUSED), "NOT_RELEASED QUEUE_PAUSED"),
        (LATER, "NOT_DUE"),
        # Whether a limit will be full by then, or a worker busy, nobody knows.
        (replace(LATER, limits=(FULL_JOB,), workers=BUSY), "NOT_DUE"),
        (replace(LATER, queue=PAUSED, workers=NOBODY), "NOT_DUE QUEUE_PAUSED NO_WORKER"),
        (replace(LATER, schedulers=NO_SCHEDULER), "NOT_DUE NOT_RELEASED"),
        (replace(LATER, status=ExecutionState.RETRYING), "BACKOFF"),
        (replace(LATER, hold=Hold.BREAKER), "BREAKER"),
        (replace(DUE, hold=Hold.BREAKER), "NOT_RELEASED"),
        (replace(DUE, hold=Hold.PARENT), "PARENT"),
        (replace(DUE, hold=Hold.EVENT), "EVENT"),
        # What these wait for has no time.
        (replace(LATER, hold=Hold.PARENT), "PARENT"),
        (replace(LATER, hold=Hold.LIMIT, limits=(FULL_JOB,)), "CONCURRENCY"),
        (replace(DUE, hold=Hold.OVERLAP, under_way=(SECOND,)), "OVERLAP"),
        (replace(DUE, hold=Hold.OVERLAP, ahead=2), "OVERLAP"),
        (replace(DUE, hold=Hold.OVERLAP, under_way=(SECOND,), limits=(FULL_JOB,)), "OVERLAP"),
        (replace(DUE, hold=Hold.OVERLAP), "NOT_RELEASED"),
        (replace(LATER, hold=Hold.OVERLAP, under_way=(SECOND,)), "NOT_DUE OVERLAP"),
        (LIMITED, "NOT_RELEASED"),
        (replace(LIMITED, workers=NOBODY), "NOT_RELEASED NO_WORKER"),
        # Others are there: it is passed over, so that it takes no slot from them.
        (replace(LIMITED, lane=replace(LANE, handler="x")), "NO_WORKER"),
        (replace(LIMITED, queue=PAUSED), "QUEUE_PAUSED"),
        # So it is in a full queue; but first what it waits for must have room.
        (replace(LIMITED, queue=QueueState(at_most=2, used=2)), "CONCURRENCY"),
        (replace(LIMITED, queue=QueueState(at_most=2, used=1)), "NOT_RELEASED"),
        (replace(LIMITED, queue=QueueState(at_most=2, used=2), limits=(FULL_RATE,)), "RATE"),
        (replace(DUE, queue=QueueState(at_most=2, used=2)), "NOT_RELEASED"),
        (
            replace(LIMITED, limits=(FULL_RATE, FULL_JOB, FULL_KEY)),
            "CONCURRENCY CONCURRENCY RATE",
        ),
        (
            replace(LIMITED, limits=(FULL_JOB,), schedulers=NO_SCHEDULER, queue=PAUSED),
            "CONCURRENCY NOT_RELEASED QUEUE_PAUSED",
        ),
        (replace(LIMITED, limits=(replace(FULL_JOB, slots=0),)), "NOT_RELEASED"),
        (replace(LIMITED, job_status=JobState.DELETED), "JOB_DELETED"),
    ],
)
def test_what_must_go_first_comes_first(facts: Facts, codes: str) -> None:
    assert [str(reason.code) for reason in told(facts)] == codes.split()
    assert all(reason.message and reason.way_out for reason in told(facts))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (LATER, "it is due at 2027-03-01T15:00:00.000Z, in 3 h"),
        (
            replace(
                LATER,
                status=ExecutionState.RETRYING,
                attempt_number=2,
                error={"type": "TIMEOUT", "message": "no end\nin sight"},
            ),
            (
                "attempt 2 of 4 failed with TIMEOUT: no end in sight;"
                " the next is due at 2027-03-01T15:00:00.000Z, in 3 h"
            ),
        ),
        (
            replace(LATER, hold=Hold.BREAKER, hold_detail="http://a:1 does not answer"),
            "http://a:1 does not answer; its turn comes at 2027-03-01T15:00:00.000Z, in 3 h",
        ),
        (
            replace(DUE, hold=Hold.OVERLAP, under_way=(SECOND,), ahead=1),
            (
                f"of job mail only one may be under way: {SECOND.execution_id} of job mail is"
                " RUNNING since 2027-03-01T12:00:00.000Z on worker anna;"
                " 1 execution due earlier goes first"
            ),
        ),
        (
            replace(LIMITED, limits=(FULL_KEY,)),
            "concurrency key user:7: 2 of 2 running",
        ),
        (
            replace(LIMITED, limits=(FULL_RATE,)),
            "rate limit of the tenant: 5 of 5 per 60 s used, next slot at 2027-03-01T12:00:09.000Z",
        ),
        (DUE, "it has been due for 1.0 s, and none of 1 scheduler has let it go"),
        (LIMITED, "nothing holds it any more, and none of 1 scheduler has let it go"),
        (
            replace(DUE, schedulers=NO_SCHEDULER),
            "no scheduler is running to let it go: the last was seen 90 s ago",
        ),
        (replace(DUE, schedulers=SchedulerSigns()), "no scheduler is running to let it go"),
        (
            replace(QUEUED, queue=PAUSED),
            "queue default has been paused since 2027-03-01T12:00:00.000Z: a look inside",
        ),
        (
            replace(QUEUED, workers=BUSY),
            "8 of 8 slots are in use, over 2 workers that could run it",
        ),
        (
            replace(QUEUED, ahead=1001, own_ahead=900),
            "over 1,000 executions are ahead of it in its lane, 900 of its tenant",
        ),
        (QUEUED, "it is the next in its lane, and a worker has room for it"),
    ],
)
def test_each_reason_is_told_in_words_with_its_number(facts: Facts, message: str) -> None:
    assert told(facts)[0].message == message


@pytest.mark.parametrize(
    ("facts", "until"),
    [
        (LATER, LATER.available_at),
        (replace(LATER, status=ExecutionState.RETRYING), LATER.available_at),
        (replace(LATER, hold=Hold.BREAKER), LATER.available_at),
        (replace(LIMITED, limits=(FULL_RATE,)), NOW + timedelta(seconds=9)),
        (replace(LIMITED, limits=(FULL_JOB,)), None),
        (DUE, None),
    ],
)
def test_until_when_it_holds_is_told_where_it_is_known(
    facts: Facts, until: datetime | None
) -> None:
    assert told(facts)[0].until == until


def test_what_is_late_is_not_waited_for_in_vain() -> None:
    late = replace(DUE, available_at=NOW - timedelta(minutes=5))
    assert told(DUE)[0].way_out == "wait a moment"
    assert "look at the logs" in told(late)[0].way_out


@pytest.mark.parametrize(
    ("facts", "summary"),
    [
        (QUEUED, "It is not running: it is the next in its lane, and a worker has room for it."),
        (
            replace(QUEUED, workers=NOBODY, queue=PAUSED, start_by=NOW),
            (
                "It is not running: queue default has been paused since 2027-03-01T12:00:00.000Z:"
                " a look inside; 1 more reason below; it expires unless it is claimed before"
                " 2027-03-01T12:00:00.000Z."
            ),
        ),
    ],
)
def test_the_summary_is_one_sentence(facts: Facts, summary: str) -> None:
    assert explain(facts).summary == summary


WORKER = Keeper(WorkerId(UUID(int=9)), "anna", WorkerState.ACTIVE, NOW, True)
RUNNING = replace(
    QUEUED,
    status=ExecutionState.RUNNING,
    ready=False,
    attempt_number=1,
    claimed_at=NOW - timedelta(seconds=30),
    worker=WORKER,
)


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({}, Code.RUNNING, "it runs on worker anna since 2027-03-01T11:59:30.000Z"),
        ({"progress": {"percent": 40, "message": "x"}}, Code.RUNNING, "attempt 1 of 4, 40 % done"),
        ({"progress": {"percent": None}}, Code.RUNNING, "attempt 1 of 4"),
        ({"cancel_requested_at": NOW}, Code.RUNNING, "asked to stop at 2027-03-01T12:00:00.000Z"),
        (
            {"worker": replace(WORKER, last_heartbeat_at=NOW - timedelta(seconds=20))},
            Code.RUNNING,
            "; the worker is silent for 20 s",
        ),
        (
            {"worker": replace(WORKER, status=WorkerState.DEAD)},
            Code.RUNNING,
            "; the worker is dead",
        ),
        ({"worker": replace(WORKER, is_process=False)}, Code.HANDED_OVER, "has taken it over"),
    ],
)
def test_what_is_in_somebodys_hands(changes: dict[str, Any], code: Code, words: str) -> None:
    whole = explain(replace(RUNNING, **changes))
    (reason,) = whole.reasons
    assert reason.code is code
    assert words in reason.message
    assert whole.summary == f"I{reason.message[1:]}."


def test_what_was_handed_over_has_its_timeout_from_the_claim() -> None:
    (reason,) = told(replace(RUNNING, worker=replace(WORKER, is_process=False)))
    assert reason.until == NOW + timedelta(seconds=30)


@pytest.mark.parametrize(
    ("ending", "message", "way_out"),
    [
        (
            Ending(QUEUED.execution_id, ExecutionState.SUCCEEDED, NOW, 1),
            "it is over: SUCCEEDED at 2027-03-01T12:00:00.000Z",
            "there is nothing to wait for",
        ),
        (
            Ending(QUEUED.execution_id, ExecutionState.SKIPPED, None, 0),
            "it is over: SKIPPED",
            "there is nothing to wait for",
        ),
        (
            Ending(
                QUEUED.execution_id,
                ExecutionState.FAILED,
                NOW,
                4,
                {"type": "HTTP_ERROR", "message": "503"},
                UUID(int=3),
            ),
            (
                "it is over: FAILED at 2027-03-01T12:00:00.000Z, at attempt 4: HTTP_ERROR: 503;"
                " it is among the dead letters"
            ),
            "mend the cause, then ask for a new execution of the job",
        ),
    ],
)
def test_what_is_over(ending: Ending, message: str, way_out: str) -> None:
    whole = explain_end(ending)
    (reason,) = whole.reasons
    assert (reason.code, reason.message, reason.way_out) == (Code.FINISHED, message, way_out)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (90, "90 s"),
        (600, "10 min"),
        (1e4, "3 h"),
        (3e5, "3 days"),
    ],
)
def test_a_span_is_told_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_counts_end_at_a_thousand_and_errors_at_a_line() -> None:
    assert [executions(n) for n in (1, 2, 1000, 1001)] == [
        "1 execution",
        "2 executions",
        "1,000 executions",
        "over 1,000 executions",
    ]
    assert error_words("text") == error_words(None) == error_words({}) == ""
    assert len(error_words({"message": "x" * 999})) == 200
