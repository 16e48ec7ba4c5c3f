"""Instants: lost, doubled, invented; overlaps, misfires, edits and pauses."""

from typing import Any

import pytest

from chaos.stories import Story, Told, at, five_seconds, judge, titles


def ticking(**definition: object) -> tuple[Story, list[Told]]:
    """Five instants, each fired and over."""
    story = Story()
    job = five_seconds(story, **definition)
    return story, [story.fire(job, second).run(second + 0.1) for second in range(1, 6)]


def forget(story: Story, told: Told) -> None:
    """As if it had never been."""
    story.changes = [one for one in story.changes if (one.new or one.old or {})["id"] != told.id]
    story.attempts = [row for row in story.attempts if row["id"] != told.id]


def test_every_instant_with_one_outcome_is_fine() -> None:
    story, _ = ticking()
    verdict = judge(story, "instants-once")
    assert (verdict.checked, verdict.violations) == (5, ())
    assert judge(story, "no-invention").checked == 5


def test_an_instant_without_an_outcome_is_lost() -> None:
    story, fired = ticking()
    forget(story, fired[2])
    verdict = judge(story, "instants-once")
    (witness,) = verdict.violations
    assert witness.title == f"lost: no outcome of {at(3)}"
    assert len(witness.lines) == 5  # the job, its schedule, and what is on either side
    assert str(fired[1].id) in witness.lines[3]
    assert str(fired[3].id) in witness.lines[4]


def test_an_instant_that_fired_and_was_skipped_is_doubled() -> None:
    story, fired = ticking()
    story.skip(fired[0].row["job_id"], 3, 3, "MISFIRE")
    (witness,) = judge(story, "instants-once").violations
    assert witness.title == f"doubled: 2 outcomes of {at(3)}"
    assert len(witness.records) == 2


def test_two_executions_of_one_instant_are_one_too_many() -> None:
    story, fired = ticking()
    story.fire(fired[0].row["job_id"], 3).run(6)
    assert titles(story, "instants-once") == [f"doubled: 2 outcomes of {at(3)}"]
    assert titles(story, "edits-and-pauses") == ["one instant fired twice"]


def test_the_newest_instants_of_a_job_in_force_have_ten_seconds() -> None:
    story = Story()
    job = story.job()
    for second in range(1, 50):
        story.fire(job, second).run(second + 0.1)
    assert titles(story, "instants-once", read=59.5) == []
    assert titles(story, "instants-once", read=60) == [f"lost: no outcome of {at(50)}"]


def test_an_edit_ends_the_old_schedule_and_begins_the_new() -> None:
    story = Story()
    job = story.job()
    story.fire(job, 1).run(1.1)
    story.fire(job, 2).run(2.1)
    every_two = {"type": "CRON", "cron_expression": "*/2 * * * * *"}
    edited = {"schedule": every_two, "timeout_seconds": 60, "cancel_grace_seconds": 2}
    story.version(job, 2.5, schedule_version=2, definition=edited, last_instant=at(2))
    story.version(job, 5.5, status="DELETED", last_instant=at(4))
    four = story.fire(job, 4, job_version=2).run(4.1)
    assert titles(story, "instants-once") == []
    assert titles(story, "no-invention") == []
    forget(story, four)
    assert titles(story, "instants-once") == [f"lost: no outcome of {at(4)}"]
    story.fire(job, 3, job_version=2).run(4.1)
    title = "an outcome of an instant that the schedule never had"
    assert titles(story, "no-invention") == [title]


def test_a_paused_job_owes_nothing_until_it_goes_on() -> None:
    story = Story()
    job = story.job()
    story.fire(job, 1).run(1.1)
    story.version(job, 1.5, status="PAUSED", last_instant=at(1))
    assert titles(story, "instants-once") == []
    story.version(job, 9.5, status="ACTIVE", last_instant=at(1))
    story.version(job, 9.6, status="PAUSED", last_instant=at(9))
    assert judge(story, "instants-once").found == 8
    story.skip(job, 2, 8, "PAUSED", recorded_at=at(9.5))
    story.fire(job, 9, fired=9.5, job_version=3).run(9.6)
    for name in ("instants-once", "no-invention", "overlap-and-misfire", "edits-and-pauses"):
        assert titles(story, name) == []


def test_instants_end_with_the_last_run() -> None:
    story = Story()
    job = five_seconds(
        story, schedule={"type": "CRON", "cron_expression": "* * * * * *", "max_runs": 2}
    )
    story.fire(job, 1).run(1.1)
    story.skip(job, 2, 2, "OVERLAP")
    three = story.fire(job, 3).run(3.1)
    assert titles(story, "instants-once") == []
    story.fire(job, 4).run(4.1)
    assert len(titles(story, "no-invention")) == 1
    forget(story, three)
    assert titles(story, "instants-once") == [f"lost: no outcome of {at(3)}"]


@pytest.mark.parametrize(
    ("schedule", "instant"),
    [
        ({"type": "ONE_TIME", "run_at": "2026-03-02T12:00:03+00:00"}, 3),
        ({"type": "DELAYED", "delay_seconds": 2.5}, 2.5),
        ({"type": "IMMEDIATE"}, 0),
        ({"type": "INTERVAL", "interval_seconds": 4}, 4),
    ],
)
def test_other_schedules_owe_theirs(schedule: dict[str, Any], instant: float) -> None:
    story = Story()
    job = story.job(schedule=schedule)
    story.version(job, 5, status="DELETED")
    assert titles(story, "instants-once") == [f"lost: no outcome of {at(instant)}"]
    story.fire(job, instant).run(instant + 0.1)
    assert titles(story, "instants-once") == []


def test_a_schedule_that_the_oracle_does_not_know_is_no_pass() -> None:
    story = Story()
    story.job(schedule={"type": "CRON", "cron_expression": "H * * * *"})
    assert titles(story, "instants-once") == ["the oracle cannot tell: the H of 'H * * * *'"]


def test_a_skip_record_must_count_right() -> None:
    story = Story()
    job = five_seconds(story)
    story.skip(job, 1, 5, "PAUSED", count=4)
    title = "a skip record of 4 where the schedule has 5"
    assert titles(story, "no-invention") == [title]


def test_an_outcome_of_an_unknown_version_is_strange() -> None:
    story, fired = ticking()
    story.fire(fired[0].row["job_id"], 6, job_version=9).run(6)
    assert titles(story, "no-invention") == ["an outcome of a version that the job never had"]


def test_what_nobody_asked_for_is_an_invention() -> None:
    story, fired = ticking()
    job = fired[0].row["job_id"]
    asked = story.fire(job, 6, trigger="ENQUEUE").run(6.1)
    assert len(titles(story, "no-invention")) == 1
    story.exchange("enqueue", 5.9, None, job_id=job)
    assert titles(story, "no-invention") == []
    story.fire(job, 7, trigger="ENQUEUE").run(7.1)
    assert len(titles(story, "no-invention")) == 1
    story.exchange("enqueue", 5.9, 202, job_id=job, execution_id=asked.id)
    assert titles(story, "no-invention") == []


def following() -> tuple[Story, Told, Any]:
    story, fired = ticking()
    after = {"type": "AFTER", "after": {"jobs": [str(fired[0].row["job_id"])]}}
    return story, fired[-1], story.job("child", after)


def test_what_follows_a_job_has_the_time_of_its_end() -> None:
    story, last, child = following()
    ended = (story.attempts[-1]["finished_at"] - at(0)).total_seconds()
    story.fire(child, ended, trigger="AFTER", fired=ended + 1).run(ended + 2)
    assert titles(story, "no-invention") == []
    story.fire(child, ended + 3, trigger="AFTER", fired=ended + 4).run(ended + 5)
    assert titles(story, "no-invention") == ["it follows an end that no parent had"]
    assert last.row["status"] == "RUNNING"


def test_an_end_that_nobody_follows_is_lost() -> None:
    story, _, _ = following()
    story.attempts[-1]["finished_at"] = at(8)
    title = "lost: an end of its parents that it never followed"
    assert titles(story, "instants-once") == [title]


def test_a_skip_stands_for_an_end_too() -> None:
    story, _, child = following()
    story.attempts[-1]["finished_at"] = at(8)
    story.skip(child, 8, 8, "OVERLAP")
    assert titles(story, "instants-once") == []


def test_what_is_tried_again_was_there_before() -> None:
    story, fired = ticking()
    story.fire(fired[0].row["job_id"], 8, trigger="REPLAY").run(8.1)
    story.attempts[-1]["retry_of"] = fired[0].id
    assert titles(story, "no-invention") == []
    story.attempts[-1]["retry_of"] = None
    assert titles(story, "no-invention") == ["it repeats an execution that never was"]
