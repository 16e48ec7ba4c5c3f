"""An attempt that fails without having told the sink so, or without a cause outside, is found."""

from typing import Any

import pytest

from chaos.stories import EVERY_SECOND, WORKER, Story, Told, at, begun, judge, lost, titles

NAME = "failures-meant"
RAISED = {"type": "HANDLER_ERROR", "message": "ConnectionError: no answer"}


def failed(error: dict[str, Any] | None, *words: str) -> Story:
    story = Story()
    told = story.fire(story.job(), 1).claim(1.1)
    for word in words:
        told.tell(word, 1.2)
    told.end(1.3, "FAILED", error=error)
    return story


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RAISED, ["begun", "failing"]),
        ({"type": "EXIT_CODE"}, ["begun", "poison"]),
        (None, ["begun", "done"]),
    ],
)
def test_what_was_told_or_befell_it_is_right(
    error: dict[str, Any] | None, words: list[str]
) -> None:
    verdict = judge(failed(error, *words), NAME)
    assert (verdict.checked, verdict.violations) == (1, ())


@pytest.mark.parametrize("error", [RAISED, {"type": "INVALID_PAYLOAD", "message": "no"}])
def test_a_failure_that_nobody_meant(error: dict[str, Any]) -> None:
    assert titles(failed(error, "begun"), NAME) == ["it failed, and never meant to"]


def test_the_word_of_another_attempt_does_not_count() -> None:
    story = failed(RAISED, "begun", "failing")
    again = story.fire(story.jobs[0]["id"], 2).claim(2.1).tell("begun", 2.2)
    again.end(2.3, "FAILED", error=RAISED)
    assert len(titles(story, NAME)) == 1


@pytest.mark.parametrize(("lasted", "right"), [(1.4, False), (1.8, True), (9, True)])
def test_nothing_times_out_before_its_time(lasted: float, right: bool) -> None:
    story = Story()
    told = story.fire(story.job(timeout_seconds=2), 1).claim(1.1)
    told.end(1.1 + lasted, "TIMED_OUT", error={"type": "TIMEOUT"})
    assert titles(story, NAME) == ([] if right else [f"it timed out after {lasted:.2f} s of 2"])


def test_a_call_that_never_got_through_has_a_time_of_its_own() -> None:
    story = Story()
    told = story.fire(story.job(), 1).claim(1.1)
    told.end(3, "FAILED", error={"type": "TIMEOUT", "message": "no connection to here in time"})
    assert titles(story, NAME) == []


@pytest.mark.parametrize(
    ("start_by", "title"),
    [
        (4, None),
        (5, None),
        (5.1, "it expired before its start deadline 12:00:05.100000"),
        (None, "it expired without a start deadline"),
    ],
)
def test_nothing_expires_before_its_deadline(start_by: float | None, title: str | None) -> None:
    story = Story()
    deadline = None if start_by is None else at(start_by)
    told = story.fire(story.job(), 1, start_by=deadline)
    told.end(5, "FAILED", error={"type": "EXPIRED"})
    assert titles(story, NAME) == ([] if title is None else [title])


def taken() -> Story:
    """From a worker that was heard of all the time."""
    story, told = begun()
    told.claim(1.1).leave(5, "LOSE", run_alone=True).release(5.1).run(6)
    story.attempts[0]["error"] = {"type": "WORKER_LOST"}
    return story


LOST = "its worker was called lost, and neither was silent nor struck"


def test_who_was_silent_is_lost() -> None:
    story, _ = lost()
    story.faults.clear()
    story.attempts[0]["error"] = {"type": "WORKER_LOST"}
    assert titles(story, NAME) == []
    story.workers[0]["last_heartbeat_at"] = at(18)
    assert titles(story, NAME) == [LOST]


@pytest.mark.parametrize("kind", ["kill worker group", "stop worker", "end worker", "strand"])
def test_who_was_struck_may_leave_before_it_was_silent(kind: str) -> None:
    story = taken()
    assert titles(story, NAME) == [LOST]
    story.fault(kind, "worker-2", 2, 4)
    story.fault("kill host", "worker-1", 2, 2)
    story.fault("restart database", "", 2, 4)
    assert titles(story, NAME) == [LOST]
    story.fault(kind, "worker-1", 2, 4)
    assert titles(story, NAME) == []


ENDED = "its process ended, and neither it nor anybody else had done that"


def test_a_process_ends_by_its_handler_or_is_killed() -> None:
    story = Story()
    story.worker()
    told = story.fire(story.job(), 1).claim(1.1, WORKER).tell("begun", 1.2)
    told.end(3, "FAILED", error={"type": "EXIT_CODE"})
    assert titles(story, NAME) == [ENDED]
    story.fault("kill host", "worker-2", 2, 2)
    story.fault("kill host", "worker-1", 0.5, 0.5)
    story.fault("stop worker", "worker-1", 2, 2)
    assert titles(story, NAME) == [ENDED]
    story.fault("kill host", "worker-1", 2, 2)
    assert titles(story, NAME) == []


def cancelled(policy: str = "SKIP", trigger: str = "SCHEDULE") -> tuple[Story, Told]:
    story = Story()
    story.worker()
    job = story.job(schedule={**EVERY_SECOND, "overlap_policy": policy})
    told = story.fire(job, 1, trigger=trigger).claim(1.1, WORKER)
    told.change(3, cancel_requested_at=at(3)).end(4, "CANCELLED", error={"type": "CANCELLED"})
    return story, told


UNASKED = "it was cancelled, and nobody had asked for that"


@pytest.mark.parametrize("status", [None, 202])
def test_a_client_may_cancel_answered_or_not(status: int | None) -> None:
    story, told = cancelled()
    story.exchange("cancel", 2.9, status, execution_id=told.row["job_id"])
    story.exchange("cancel", 5, status, execution_id=told.id)
    assert titles(story, NAME) == [UNASKED]
    story.exchange("cancel", 2.9, status, execution_id=told.id)
    assert titles(story, NAME) == []


def test_what_waits_of_a_deleted_job_is_cancelled() -> None:
    story, told = cancelled()
    story.exchange("delete", 5, job_id=told.row["job_id"])
    assert titles(story, NAME) == [UNASKED]
    story.exchange("delete", 2.9, None, job_id=told.row["job_id"])
    assert titles(story, NAME) == []


@pytest.mark.parametrize(
    ("policy", "trigger", "fired", "right"),
    [
        ("CANCEL_PREVIOUS", "SCHEDULE", 3, True),
        ("CANCEL_PREVIOUS", "ENQUEUE", 3, False),
        ("CANCEL_PREVIOUS", "SCHEDULE", 4.5, False),
        ("CANCEL_PREVIOUS", "SCHEDULE", 0.5, False),
        ("QUEUE_ONE", "SCHEDULE", 3, False),
    ],
)
def test_a_newer_instant_cancels_what_was_fired_before(
    policy: str, trigger: str, fired: float, right: bool
) -> None:
    story, told = cancelled(policy, trigger)
    story.fire(told.row["job_id"], 3, fired=fired, status="WAITING", hold="OVERLAP", rank=None)
    assert titles(story, NAME) == ([] if right else [UNASKED])


def test_nothing_takes_its_own_place() -> None:
    story = Story()
    job = story.job(schedule={**EVERY_SECOND, "overlap_policy": "CANCEL_PREVIOUS"})
    told = story.fire(job, 1, status="WAITING", hold="OVERLAP", rank=None)
    told.end(4, "CANCELLED", error={"type": "CANCELLED"})
    assert titles(story, NAME) == [UNASKED]
