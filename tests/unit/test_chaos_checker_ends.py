"""Requests, cancels, retries and dead letters: how often, how soon, and what becomes of it."""

from datetime import timedelta
from typing import Any

import pytest

from chaos.checker.retries import delay_bounds
from chaos.stories import WORKER, Story, Told, at, judge, titles

POLICY = {
    "max_attempts": 2,
    "backoff": "FIXED",
    "initial_delay_seconds": 1,
    "multiplier": 2,
    "max_delay_seconds": 5,
    "jitter": 0.5,
    "max_crashes": 2,
}


def failing(attempts: int = 2, **policy: object) -> tuple[Story, Told]:
    """Fails at every attempt, and is given up after so many."""
    story = Story()
    story.worker()
    told = story.fire(story.job("doomed", retry_policy=POLICY | policy), 1)
    for number in range(1, attempts):
        told.claim(number * 3).leave(number * 3 + 0.5, "RETRY", delay=1).release(number * 3 + 1.6)
    told.claim(attempts * 3).end(attempts * 3 + 0.5, "FAILED", error={"type": "HANDLER_ERROR"})
    return story, told


def test_as_often_as_the_policy_says_is_fine() -> None:
    story, told = failing()
    story.letter(told, "EXHAUSTED")
    assert judge(story, "retries-bounded").checked == 2
    assert titles(story, "retries-bounded") == []
    assert titles(story, "dead-letters-once") == []


def test_more_often_is_not() -> None:
    story, _ = failing(3)
    (witness,) = judge(story, "retries-bounded").violations
    assert witness.title == "3 attempts, its policy allows 2"
    assert len(witness.records) == 3


def test_after_a_shared_death_there_is_one_more_attempt() -> None:
    story = Story()
    told = story.fire(story.job(retry_policy=POLICY), 1)
    told.claim(1).leave(2, "RETRY", delay=1).release(3.1)
    told.claim(4).leave(5, "LOSE", run_alone=True).release(5.1)
    told.claim(6).end(7, "FAILED")
    assert titles(story, "retries-bounded") == []
    told = story.fire(story.job("b", retry_policy=POLICY), 1)
    told.claim(1).leave(2, "LOSE").release(2.1).claim(3).leave(4, "LOSE").release(4.1)
    told.claim(5).end(6, "FAILED")
    title = "it shared 2 deaths; after the first it must run alone"
    assert titles(story, "retries-bounded") == [title]


def test_nothing_goes_on_after_its_last_crash() -> None:
    story = Story()
    told = story.fire(story.job(retry_policy=POLICY | {"max_attempts": 9}), 1, run_alone=True)
    told.claim(1).leave(2, "LOSE", crash_count=1).release(2.1)
    told.claim(3).leave(4, "LOSE", crash_count=2)
    title = "it goes on after 2 crashes of its own of 2 at most"
    assert titles(story, "retries-bounded") == [title]


@pytest.mark.parametrize(("delay", "right"), [(0.4, False), (0.5, True), (1.5, True), (1.6, False)])
def test_a_retry_waits_as_long_as_the_policy_says(delay: float, right: bool) -> None:
    story = Story()
    told = story.fire(story.job(retry_policy=POLICY), 1)
    told.claim(1).leave(2, "RETRY", delay=delay)
    assert (titles(story, "retries-bounded") == []) is right


def test_a_target_may_ask_for_more_but_not_for_less() -> None:
    story = Story()
    told = story.fire(story.job(retry_policy=POLICY), 1)
    told.claim(1).leave(2, "RETRY", delay=30)
    story.attempts[-1]["error"] = {"type": "HTTP_ERROR"}
    assert titles(story, "retries-bounded") == []


def test_nothing_is_claimed_within_its_delay() -> None:
    story = Story()
    told = story.fire(story.job(retry_policy=POLICY), 1)
    told.claim(1).leave(2, "RETRY", delay=1).release(2.2).claim(2.3)
    title = f"it was claimed again within its delay of at least {timedelta(seconds=0.5)}"
    assert titles(story, "retries-bounded") == [title]


@pytest.mark.parametrize(
    ("backoff", "number", "low", "high"),
    [
        ("FIXED", 7, 0.5, 1.5),
        ("LINEAR", 3, 1.5, 4.5),
        ("EXPONENTIAL", 3, 2, 5),
        ("EXPONENTIAL", 9, 5, 5),
    ],
)
def test_delays_grow_and_are_capped(backoff: str, number: int, low: float, high: float) -> None:
    bounds = delay_bounds(POLICY | {"backoff": backoff}, number)
    assert bounds == (timedelta(seconds=low), timedelta(seconds=high))


def test_what_is_given_up_has_a_letter() -> None:
    story, told = failing()
    assert titles(story, "dead-letters-once") == ["given up without a dead letter"]
    story.letter(told, "EXHAUSTED")
    story.letter(told, "EXHAUSTED")
    assert titles(story, "dead-letters-once") == ["two dead letters of one execution"]


@pytest.mark.parametrize(
    ("reason", "values", "title"),
    [
        ("EXHAUSTED", {"total_attempts": 7}, "it tells of 7 attempts, history of 2"),
        ("EXPIRED", {}, "its reason is EXPIRED, its error HANDLER_ERROR"),
        ("POISON", {}, "called poison, with fewer crashes than 2"),
        (
            "NON_RETRYABLE",
            {},
            "given up as NON_RETRYABLE (HANDLER_ERROR), and nothing in a run says so of itself",
        ),
        ("EXHAUSTED", {"payload": {"a": 1}}, "its payload is not the execution's"),
    ],
)
def test_a_letter_tells_the_truth(reason: str, values: dict[str, Any], title: str) -> None:
    story, told = failing()
    story.letter(told, reason, **values)
    assert titles(story, "dead-letters-once") == [title]


def test_nothing_is_given_up_too_early() -> None:
    story, told = failing(max_attempts=3)
    story.letter(told, "EXHAUSTED")
    title = "given up after 2 attempts, its policy allows 3"
    assert titles(story, "dead-letters-once") == [title]


def test_poison_is_what_crashed_alone_or_failed_too_fast() -> None:
    story, told = failing(poison_window_seconds=60, max_attempts=9, attempts=3)
    story.letter(told, "POISON")
    assert titles(story, "dead-letters-once") == []
    story, told = failing(poison_window_seconds=1, max_attempts=9, attempts=3)
    story.letter(told, "POISON")
    assert len(titles(story, "dead-letters-once")) == 1


def test_a_letter_of_what_is_well_is_wrong() -> None:
    story = Story()
    told = story.fire(story.job(), 1).run(1.1)
    story.letter(told, "EXHAUSTED")
    assert titles(story, "dead-letters-once") == ["a dead letter of what is SUCCEEDED"]
    story.attempts.clear()
    assert titles(story, "dead-letters-once") == ["a dead letter of what is not over"]


def asked() -> tuple[Story, Told]:
    story = Story()
    story.worker()
    told = story.fire(story.job(), 1, trigger="ENQUEUE").run(1.1)
    story.attempts[0]["labels"] = {"request": "k"}
    story.exchange("enqueue", 0.5, None, key="k", body={"a": 1})
    story.exchange("enqueue", 0.8, 202, key="k", body={"a": 1}, execution_id=told.id)
    return story, told


def test_a_request_sent_twice_and_done_once_is_fine() -> None:
    story, told = asked()
    story.exchange("enqueue", 5, 202, key="k", body={"a": 1}, execution_id=told.id)
    story.exchange("enqueue", 6, 422, key="k", body={"a": 2})
    verdict = judge(story, "requests-once")
    assert (verdict.checked, verdict.violations) == (1, ())


def test_a_request_has_one_answer() -> None:
    story, told = asked()
    other = story.fire(told.row["job_id"], 2, trigger="ENQUEUE").run(2.1)
    story.exchange("enqueue", 5, 202, key="k", body={"a": 1}, execution_id=other.id)
    (witness,) = judge(story, "requests-once").violations
    assert (witness.title, len(witness.records)) == ("one request, two answers", 2)


def test_a_key_is_for_one_request() -> None:
    story, told = asked()
    story.exchange("enqueue", 5, 202, key="k", body={"a": 2}, execution_id=told.id)
    assert titles(story, "requests-once") == ["one key, two requests, both carried out"]


def test_a_request_is_carried_out_once() -> None:
    story, told = asked()
    story.fire(told.row["job_id"], 2, trigger="ENQUEUE").run(2.1)
    story.attempts[1]["labels"] = {"request": "k"}
    assert titles(story, "requests-once") == ["the request k was carried out 2 times"]
    story.attempts[1] |= {"labels": None, "payload": {"request": "k"}}
    assert titles(story, "requests-once") == ["the request k was carried out 2 times"]


def test_what_was_acknowledged_is_there() -> None:
    story, told = asked()
    story.changes, story.attempts = [], []
    assert titles(story, "requests-once") == ["an acknowledged request whose execution is nowhere"]
    story = Story()
    story.exchange("replay", 1, 202, key="r", execution_id=told.id)
    assert titles(story, "requests-once") == ["an acknowledged request whose execution is nowhere"]
    story = Story()
    story.exchange("create", 1, 201, job_id=told.id)
    assert titles(story, "requests-once") == ["an acknowledged job that is nowhere"]


def test_a_name_is_given_once() -> None:
    story = Story()
    story.job("a")
    story.job("a")
    assert titles(story, "requests-once") == ["2 jobs named a"]


def cancelled(status: str = "CANCELLED", ended: float = 3) -> tuple[Story, Told]:
    story = Story()
    story.worker()
    told = story.fire(story.job(), 1).claim(1.1, WORKER)
    told.change(2, cancel_requested_at=at(2)).end(ended, status)
    story.exchange("cancel", 1.9, 202, execution_id=told.id)
    return story, told


def test_a_cancelled_execution_stays_so() -> None:
    story, _ = cancelled()
    verdict = judge(story, "cancel-holds")
    assert (verdict.checked, verdict.violations) == (2, ())
    story, _ = cancelled("SUCCEEDED")
    assert titles(story, "cancel-holds") == [
        "it was asked to stop, and ended otherwise",
        "a cancel was acknowledged, and it is SUCCEEDED",
    ]


def test_a_cancel_that_came_too_late_binds_nobody() -> None:
    story = Story()
    told = story.fire(story.job(), 1).run(1.1)
    story.exchange("cancel", 2, 409, execution_id=told.id)
    story.exchange("cancel", 2, None, execution_id=told.id)
    assert titles(story, "cancel-holds") == []


def test_a_cancel_is_carried_out_within_its_grace() -> None:
    story, _ = cancelled(ended=40)
    assert titles(story, "cancel-holds") == ["it took 38.0 s to stop, its grace is 0:00:02"]
    story.fault("stop worker", "worker-1", 2, 30)
    assert titles(story, "cancel-holds") == []


def test_a_replay_makes_one_execution_and_its_letter_names_it() -> None:
    story, told = failing()
    again = story.fire(told.row["job_id"], 9, trigger="REPLAY").run(9.1)
    letter = story.letter(told, "EXHAUSTED", replayed_as=again.id)
    story.attempts[-1]["retry_of"] = told.id
    assert titles(story, "dead-letters-once") == []
    story.fire(told.row["job_id"], 10, trigger="REPLAY").run(10.1)
    story.attempts[-1]["retry_of"] = told.id
    assert titles(story, "dead-letters-once") == ["a dead letter was replayed 2 times"]
    del story.attempts[-2:]
    assert titles(story, "dead-letters-once") == ["replayed as what never was"]
    story.fire(told.row["job_id"], 11, trigger="REPLAY").run(11.1)
    story.attempts[-1]["retry_of"] = told.row["job_id"]
    assert "a replay of no dead letter" in titles(story, "dead-letters-once")
    assert letter["replayed_as"] == again.id
