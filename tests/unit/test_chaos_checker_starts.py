"""Nothing is available before what was asked for: a request's delay, a handler's snooze."""

from typing import Any

import pytest

from chaos.stories import Story, Told, at, judge, titles

NAME = "never-early"


def asked(available: float, trigger: str = "ENQUEUE") -> tuple[Story, Told]:
    """There since second 2, available from then on or later."""
    story = Story()
    told = story.fire(story.job(), 2, trigger=trigger, available_at=at(available), status="PENDING")
    return story, told


@pytest.mark.parametrize("action", ["enqueue", "trigger"])
@pytest.mark.parametrize(("available", "right"), [(4.1, False), (4.3, True), (4.6, True)])
def test_a_delay_is_waited_for(action: str, available: float, right: bool) -> None:
    story, told = asked(available)
    story.exchange(action, 1.5, 202, key="k", execution_id=told.id, body={"delay_seconds": 3})
    title = "it was asked for 3 s later, and was available before that"
    assert titles(story, NAME) == ([] if right else [title])


def test_a_delay_counts_from_the_first_time_that_it_was_sent() -> None:
    story, told = asked(4.6)
    known: dict[str, Any] = {"key": "k", "body": {"delay_seconds": 3}}
    story.exchange("enqueue", 3, 202, execution_id=told.id, **known)
    assert len(titles(story, NAME)) == 1
    story.exchange("trigger", 1.5, None, **known)
    assert len(titles(story, NAME)) == 1
    story.exchange("enqueue", 1.5, None, **known)
    assert titles(story, NAME) == []


def test_of_a_bulk_each_has_its_own_delay() -> None:
    story, told = asked(2)
    other = story.fire(told.row["job_id"], 2, trigger="ENQUEUE", available_at=at(5))
    answer = {"items": [{"execution_id": str(one.id)} for one in (told, other)]}
    body: dict[str, Any] = {"executions": [{"job": "a"}, {"delay_seconds": 3}]}
    story.exchange("bulk", 1.9, 202, key="k", body=body, answer=answer)
    verdict = judge(story, NAME)
    assert (verdict.checked, verdict.violations) == (1, ())
    body["executions"].reverse()
    (witness,) = judge(story, NAME).violations
    assert str(told.id) in witness.records[1]


@pytest.mark.parametrize(
    ("action", "status", "more"),
    [
        ("enqueue", 422, {}),
        ("enqueue", 200, {"unique_key": "only-1"}),
        ("replay", 202, {}),
    ],
)
def test_what_another_request_made_has_not_its_delay(
    action: str, status: int, more: dict[str, str]
) -> None:
    story, told = asked(2)
    body = {"delay_seconds": 3, **more}
    story.exchange(action, 1.9, status, key="k", execution_id=told.id, body=body)
    assert titles(story, NAME) == []


def snoozed(delay: float, **values: Any) -> Story:  # noqa: ANN401
    """Says at 2 that it snoozes for a second; that is written at 2.1."""
    story = Story()
    job = story.job()
    story.versions[0]["payload"] = {"snoozes": 1, "seconds": 1}
    told = story.fire(job, 1, **values).claim(1.1).tell("begun", 1.2).tell("snoozed", 2)
    told.leave(2.1, "SNOOZE", delay=delay)
    return story


@pytest.mark.parametrize(("delay", "right"), [(0, False), (0.6, False), (0.7, True), (1, True)])
def test_a_snooze_is_waited_for(delay: float, right: bool) -> None:
    title = "it snoozed for 1 s, and was available before that"
    assert titles(snoozed(delay), NAME) == ([] if right else [title])


def test_a_payload_of_its_own_may_say_another_time() -> None:
    assert titles(snoozed(0, trigger="REPLAY"), NAME) == []


def test_who_lost_its_hold_has_not_snoozed() -> None:
    story = Story()
    job = story.job()
    story.versions[0]["payload"] = {"seconds": 1}
    story.fire(job, 1).claim(1.1).tell("snoozed", 2).leave(2.1, "HAND_BACK")
    assert titles(story, NAME) == []
