"""Overlap, misfire, edits and pauses: what a job's policies do, seen from outside."""

from typing import Any
from uuid import UUID

import pytest

from chaos.stories import EVERY_SECOND, Story, at, five_seconds, judge, titles


def with_policy(**policies: object) -> tuple[Story, UUID]:
    story = Story()
    return story, story.job(schedule={**EVERY_SECOND, **policies})


def held(story: Story, job: UUID, second: float, **values: Any) -> Any:  # noqa: ANN401
    return story.fire(job, second, status="WAITING", hold="OVERLAP", rank=None, **values)


@pytest.mark.parametrize("policy", ["SKIP", "QUEUE_ONE", "QUEUE_ALL", "CANCEL_PREVIOUS"])
def test_nothing_starts_beside_another_unless_it_is_allowed(policy: str) -> None:
    story, job = with_policy(overlap_policy=policy)
    story.fire(job, 1).claim(1.1)
    second = story.fire(job, 2)
    (witness,) = judge(story, "overlap-and-misfire").violations
    assert witness.title == f"it started under {policy} while another execution was not over"
    assert len(witness.records) == 3
    assert str(second.id) in witness.records[-1]


def test_what_is_allowed_is_fine() -> None:
    story, job = with_policy(overlap_policy="ALLOW")
    story.fire(job, 1).claim(1.1)
    story.fire(job, 2).claim(2.1)
    assert titles(story, "overlap-and-misfire") == []


def test_a_late_end_comes_before_the_next_start() -> None:
    story, job = with_policy()
    story.fire(job, 1).run(1.1)
    story.fire(job, 2).run(2.1)
    assert titles(story, "overlap-and-misfire") == []


def test_of_those_that_wait_there_is_one() -> None:
    story, job = with_policy(overlap_policy="QUEUE_ONE")
    story.fire(job, 1).claim(1.1)
    held(story, job, 2)
    assert titles(story, "overlap-and-misfire") == []
    held(story, job, 3)
    assert titles(story, "overlap-and-misfire") == ["more than one waits under QUEUE_ONE"]


def test_what_waits_is_let_go_when_nothing_else_is_under_way() -> None:
    story, job = with_policy(overlap_policy="QUEUE_ALL")
    first = story.fire(job, 1).claim(1.1)
    second = held(story, job, 2)
    third = held(story, job, 3)
    first.end(4)
    second.release(4.5)
    assert titles(story, "overlap-and-misfire") == []
    third.release(4.6)
    title = "it was let go while an earlier execution of the job was not over"
    assert titles(story, "overlap-and-misfire") == [title]


@pytest.mark.parametrize(("edited", "right"), [(3, True), (4.4, True), (4.6, False)])
def test_what_waits_is_let_go_once_overlaps_are_allowed(edited: float, right: bool) -> None:
    story, job = with_policy(overlap_policy="QUEUE_ALL")
    story.fire(job, 1).claim(1.1)
    waiting = held(story, job, 2)
    definition = story.versions[0]["definition"]
    schedule = definition["schedule"] | {"overlap_policy": "ALLOW"}
    story.version(job, edited, definition=definition | {"schedule": schedule}, schedule_version=2)
    waiting.release(4.5)
    assert (titles(story, "overlap-and-misfire") == []) is right


def test_a_newer_instant_stops_the_one_before() -> None:
    story, job = with_policy(overlap_policy="CANCEL_PREVIOUS")
    first = story.fire(job, 1).claim(1.1)
    held(story, job, 2)
    title = "a newer instant came, and the execution before it was not told to stop"
    assert titles(story, "overlap-and-misfire") == [title]
    first.change(2.1, cancel_requested_at=at(2.1))
    assert titles(story, "overlap-and-misfire") == []


def test_an_overlap_needs_something_that_is_not_over() -> None:
    story, job = with_policy()
    story.fire(job, 1).run(1.1)
    story.skip(job, 2, 2, "OVERLAP")
    assert titles(story, "overlap-and-misfire") == []
    story.skip(job, 20, 20, "OVERLAP")
    title = "skipped for an overlap, and nothing of the job was live"
    assert titles(story, "overlap-and-misfire") == [title]


def test_five_seconds_late_is_no_misfire() -> None:
    story, job = with_policy()
    story.skip(job, 1, 3, "MISFIRE", recorded_at=at(4.5))
    story.fire(job, 4, fired=4.5)
    assert titles(story, "overlap-and-misfire") == ["skipped as a misfire though at most 5 s late"]


@pytest.mark.parametrize(
    "schedule",
    [
        {"type": "INTERVAL", "interval_seconds": 1},
        {"type": "CRON", "cron_expression": "* * * * * *"},
    ],
    ids=lambda schedule: schedule["type"],
)
@pytest.mark.parametrize(("recorded", "wrong"), [(6.9, True), (7.1, False)])
def test_with_jitter_it_is_late_from_the_next_instant_on(
    schedule: dict[str, Any], recorded: float, wrong: bool
) -> None:
    """However long the jitter is: the window ends there."""
    story = Story()
    job = story.job(schedule={**schedule, "jitter_seconds": 3600, "overlap_policy": "ALLOW"})
    story.skip(job, 1, 5, "MISFIRE", recorded_at=at(recorded))
    story.fire(job, 6, fired=recorded)
    title = "skipped as a misfire though at most 6 s late"
    assert titles(story, "overlap-and-misfire") == ([title] if wrong else [])


@pytest.mark.parametrize(
    ("policies", "skipped", "fired", "wrong"),
    [
        ({}, (1, 9), [10], None),
        ({}, (1, 8), [9, 10], "2 fired after an outage under FIRE_ONCE, at most 1 may"),
        ({}, (1, 10), [], "0 fired after an outage under FIRE_ONCE, 1 must"),
        ({"misfire_policy": "FIRE_ALL", "misfire_max_runs": 3}, (1, 7), [8, 9, 10], None),
        (
            {"misfire_policy": "FIRE_ALL", "misfire_max_runs": 2},
            (1, 7),
            [8, 9, 10],
            "3 fired after an outage under FIRE_ALL, at most 2 may",
        ),
        (
            {"misfire_policy": "SKIP"},
            (1, 9),
            [10],
            "skipped under SKIP though at most a minute late",
        ),
        ({"misfire_grace_seconds": 8}, (1, 9), [10], None),
        ({}, (9, 10), [8], "an older instant fired while a newer one was skipped as a misfire"),
    ],
)
def test_the_misfire_policy_acts_after_an_outage(
    policies: dict[str, Any], skipped: tuple[int, int], fired: list[int], wrong: str | None
) -> None:
    story, job = with_policy(overlap_policy="ALLOW", **policies)
    story.skip(job, *skipped, "MISFIRE", recorded_at=at(16))
    story.fault("restart database", "", 0, 15)
    for second in fired:
        story.fire(job, second, fired=16)
    assert [*titles(story, "overlap-and-misfire"), None][0] == wrong


def test_fires_that_lie_far_apart_show_that_the_policy_did_not_act() -> None:
    story, job = with_policy(overlap_policy="ALLOW")
    story.fire(job, 1, fired=9)
    story.fire(job, 8, fired=9)
    title = "2 fired after an outage under FIRE_ONCE, at most 1 may"
    assert titles(story, "overlap-and-misfire") == [title]


def test_nothing_fires_while_its_job_is_paused() -> None:
    story = Story()
    job = five_seconds(story)
    story.fire(job, 6, job_version=2)
    (witness,) = judge(story, "edits-and-pauses").violations
    assert witness.title == "it fired while its job was PAUSED"
    assert len(witness.records) == 2


def test_nothing_fires_under_a_version_that_is_over_or_to_come() -> None:
    story = Story()
    job = five_seconds(story)
    story.version(job, 20, status="ACTIVE")
    story.fire(job, 6, job_version=1)
    assert titles(story, "edits-and-pauses") == [
        "it fired under a version that was no longer in force"
    ]
    story = Story()
    job = five_seconds(story)
    story.version(job, 20, status="ACTIVE")
    story.fire(job, 10, job_version=3)
    assert titles(story, "edits-and-pauses") == ["it fired before its version was in force"]


def test_a_fire_may_read_its_time_just_before_a_version_comes() -> None:
    story = Story()
    job = five_seconds(story)
    story.version(job, 20, status="ACTIVE")
    story.fire(job, 19.95, job_version=3, fired=19.96)
    assert titles(story, "edits-and-pauses") == []


def test_only_what_ends_a_pause_skips_for_it() -> None:
    story = Story()
    job = five_seconds(story)
    story.skip(job, 6, 9, "PAUSED", recorded_at=at(9.5))
    assert titles(story, "edits-and-pauses") == ["skipped as PAUSED, and no pause explains it"]
    story.version(job, 9.5, status="ACTIVE")
    assert titles(story, "edits-and-pauses") == []


@pytest.mark.parametrize("action", ["pause", "resume", "delete"])
def test_what_was_acknowledged_has_happened(action: str) -> None:
    story = Story()
    job = story.job()
    story.version(job, 10, status="PAUSED")
    story.version(job, 20, status="ACTIVE")
    story.version(job, 30, status="DELETED")
    right = {"pause": 9.95, "resume": 19.95, "delete": 29.95}[action]
    story.exchange(action, right, 200, job_id=job)
    story.exchange(action, right + 13, None, job_id=job)
    assert titles(story, "edits-and-pauses") == []
    story.exchange(action, 5 if action != "resume" else 12, 200, job_id=job)
    assert titles(story, "edits-and-pauses") == [
        f"an acknowledged {action} that no version tells of"
    ]


def test_a_repeated_request_may_be_answered_for_its_first_copy() -> None:
    story = Story()
    job = story.job()
    story.version(job, 10, status="PAUSED")
    story.version(job, 11, status="ACTIVE")
    story.exchange("pause", 9.9, None, job_id=job, key="k")
    story.exchange("pause", 15, 200, job_id=job, key="k")
    assert titles(story, "edits-and-pauses") == []


def test_an_acknowledged_edit_names_its_version() -> None:
    story = Story()
    job = story.job()
    story.exchange("edit", 5, 200, job_id=job, answer={"version": 2})
    assert len(titles(story, "edits-and-pauses")) == 1
    story.version(job, 5)
    assert titles(story, "edits-and-pauses") == []


def test_nothing_fires_under_a_version_that_never_was() -> None:
    story = Story()
    story.fire(story.job(), 1, job_version=9)
    assert titles(story, "edits-and-pauses") == ["it fired under a version that never was"]


@pytest.mark.parametrize(
    ("policies", "seconds", "title"),
    [
        ({"misfire_grace_seconds": 8}, 20, "it fired though later than its grace of 8 s"),
        ({"misfire_grace_seconds": 8}, 14, None),
        ({"misfire_policy": "SKIP"}, 80, "it fired more than a minute late under SKIP"),
        ({"misfire_policy": "SKIP"}, 60, None),
    ],
)
def test_nothing_fires_that_is_too_late(
    policies: dict[str, Any], seconds: float, title: str | None
) -> None:
    story, job = with_policy(overlap_policy="ALLOW", **policies)
    story.fire(job, 1, fired=seconds)
    assert [*titles(story, "overlap-and-misfire"), None][0] == title


def test_what_should_be_skipped_does_not_wait() -> None:
    story, job = with_policy()
    story.fire(job, 1).claim(1.1)
    held(story, job, 2)
    assert titles(story, "overlap-and-misfire") == ["it waits where its policy skips"]
