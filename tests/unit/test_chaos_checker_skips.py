"""What is skipped for an overlap is what its job's policy skips."""

from typing import Any
from uuid import UUID

import pytest

from chaos.stories import EVERY_SECOND, Story, Told, titles

NAME = "overlap-and-misfire"
NONE_WAITED = "skipped for an overlap under QUEUE_ONE, and none waited"


def running(policy: str) -> tuple[Story, UUID]:
    """One execution of the job runs all the time."""
    story = Story()
    job = story.job(schedule={**EVERY_SECOND, "overlap_policy": policy})
    story.fire(job, 1).claim(1.1)
    return story, job


def waiting(story: Story, job: UUID, second: float, **values: Any) -> Told:  # noqa: ANN401
    return story.fire(job, second, status="WAITING", hold="OVERLAP", rank=None, **values)


@pytest.mark.parametrize("policy", ["ALLOW", "QUEUE_ALL"])
def test_where_all_may_start_or_wait_nothing_is_skipped(policy: str) -> None:
    story, job = running(policy)
    story.skip(job, 3, 3, "OVERLAP")
    assert titles(story, NAME) == [f"skipped for an overlap under {policy}"]


@pytest.mark.parametrize("policy", ["SKIP", "CANCEL_PREVIOUS"])
def test_others_skip_beside_whatever_is_live(policy: str) -> None:
    story, job = running(policy)
    story.skip(job, 3, 3, "OVERLAP")
    assert titles(story, NAME) == []


def test_the_policy_is_that_of_the_schedule_at_the_time() -> None:
    story, job = running("SKIP")
    allowing = {"schedule": {**EVERY_SECOND, "overlap_policy": "ALLOW"}}
    story.version(job, 5, schedule_version=2, definition=story.versions[0]["definition"] | allowing)
    story.skip(job, 3, 3, "OVERLAP")
    assert titles(story, NAME) == []
    story.skip(job, 6, 6, "OVERLAP", schedule_version=2)
    assert titles(story, NAME) == ["skipped for an overlap under ALLOW"]


def test_under_queue_one_it_is_skipped_if_one_waits() -> None:
    story, job = running("QUEUE_ONE")
    story.skip(job, 3, 3, "OVERLAP")
    assert titles(story, NAME) == [NONE_WAITED]
    waiting(story, job, 2)
    assert titles(story, NAME) == []


def test_one_that_came_with_it_waits_too() -> None:
    story, job = running("QUEUE_ONE")
    waiting(story, job, 2, fired=3.05)
    story.skip(job, 3, 3, "OVERLAP")
    assert titles(story, NAME) == []


def test_one_that_came_long_after_it_did_not_wait() -> None:
    story, job = running("QUEUE_ONE")
    waiting(story, job, 12)
    story.skip(job, 3, 3, "OVERLAP")
    assert titles(story, NAME) == [NONE_WAITED]


@pytest.mark.parametrize(("skipped", "right"), [(6, True), (8, False)])
def test_what_was_let_go_before_does_not_wait(skipped: float, right: bool) -> None:
    """A commit is seen within two seconds of the time on it."""
    story = Story()
    job = story.job(schedule={**EVERY_SECOND, "overlap_policy": "QUEUE_ONE"})
    first = story.fire(job, 1).claim(1.1)
    second = waiting(story, job, 2)
    first.end(5)
    second.release(5.1).claim(5.2)
    story.skip(job, skipped, skipped, "OVERLAP")
    assert titles(story, NAME) == ([] if right else [NONE_WAITED])


def test_a_commit_that_a_stall_held_up_is_seen_later() -> None:
    story, job = running("QUEUE_ONE")
    waiting(story, job, 2).end(5, "CANCELLED")
    story.skip(job, 12, 12, "OVERLAP")
    assert titles(story, NAME) == [NONE_WAITED]
    story.fault("stall database", "", 4.9, 11)
    assert titles(story, NAME) == []


def test_what_waits_for_a_slot_does_not_wait_for_an_overlap() -> None:
    story, job = running("QUEUE_ONE")
    story.fire(job, 1.5, status="WAITING", hold="LIMIT", rank=None, trigger="AFTER")
    story.skip(job, 3, 3, "OVERLAP")
    assert NONE_WAITED in titles(story, NAME)
