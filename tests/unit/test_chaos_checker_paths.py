"""The path of an execution: every change is an event, follows the one before, and ends once."""

from dataclasses import replace
from typing import Any

import pytest

from chaos.stories import WORKER, Story, at, begun, titles


@pytest.mark.parametrize(
    ("values", "title"),
    [
        ({"status": "RETRYING"}, "no event leads from QUEUED to RETRYING"),
        ({"fence": 1}, "its fence went from 0 to 1"),
        ({"attempt_number": 1}, "its attempt went from 0 to 1"),
        ({"worker_id": WORKER}, "it runs without a worker, or has one and does not run"),
    ],
)
def test_only_events_move_it(values: dict[str, Any], title: str) -> None:
    story, told = begun()
    told.change(2, **values)
    assert titles(story, "legal-path") == [title]


def test_a_lost_attempt_stays_counted_and_a_snoozed_one_does_not() -> None:
    story, told = begun()
    told.claim(1.1).leave(2, "SNOOZE")
    story.changes[-1] = replace(
        story.changes[-1], new={**(story.changes[-1].new or {}), "attempt_number": 1}
    )
    told.row["attempt_number"] = 1
    assert titles(story, "legal-path") == ["its attempt went from 1 to 1"]


def test_what_was_asked_to_stop_does_not_go_on() -> None:
    story, told = begun()
    told.claim(1.1).change(1.5, cancel_requested_at=at(1.5)).leave(2, "RETRY")
    assert titles(story, "legal-path") == ["it was asked to stop, and goes on"]


def test_changes_follow_each_other() -> None:
    story, told = begun()
    told.claim(1.1).end(2)
    del story.changes[1]
    assert "a change begins where the one before it did not end" in titles(story, "legal-path")


def test_live_rows_and_history_agree_with_the_log() -> None:
    story, told = begun()
    told.claim(1.1).end(2)
    story.attempts.clear()
    assert titles(story, "legal-path") == ["it is gone, and history does not know how"]
    story, told = begun()
    story.live.clear()
    assert titles(story, "legal-path") == ["it is not there, and nobody took it away"]
    story, told = begun()
    told.row["fence"] = 4
    assert titles(story, "legal-path") == ["it is not as its last change left it"]
    story, told = begun()
    story.changes.clear()
    assert titles(story, "legal-path") == ["an execution that no change tells of"]


def test_an_end_must_be_one_that_its_state_has() -> None:
    story, told = begun()
    told.end(2, "SUCCEEDED")
    assert titles(story, "legal-path") == ["no event leads from QUEUED to SUCCEEDED"]


def test_over_is_over() -> None:
    story, told = begun()
    told.run(1.1)
    story.attempts.append(story.attempts[0] | {"finished_at": at(9)})
    assert titles(story, "terminal-is-final") == ["it was over 2 times"]
    story.attempts[-1]["final"] = False
    title = "it was over, and another attempt of it ended later"
    assert titles(story, "terminal-is-final") == [title]
    del story.attempts[-1]
    story.live[told.id] = told.row
    assert titles(story, "terminal-is-final") == ["it is over, and there is a live row of it"]
    del story.live[told.id]
    story.log(9, None, told.row)
    assert titles(story, "terminal-is-final") == [
        "it was gone, and something of it was written later"
    ]


def test_an_end_is_not_later_than_the_change_that_wrote_it() -> None:
    story, told = begun()
    told.run(1.1)
    story.attempts[0]["finished_at"] = at(9)
    assert titles(story, "stale-end-refused") == ["its end is later than the change that ended it"]


def test_what_is_there_has_come() -> None:
    story, told = begun()
    told.claim(1.1).end(2)
    del story.changes[0]
    assert titles(story, "legal-path") == ["its first change is not its coming"]


@pytest.mark.parametrize(
    ("values", "title"),
    [
        ({"status": "RETRYING"}, "it came as RETRYING"),
        ({"fence": 3}, "it came with a fence, an attempt or a worker"),
    ],
)
def test_it_comes_as_nobodys(values: dict[str, Any], title: str) -> None:
    story = Story()
    story.fire(story.job(), 1, **values)
    assert titles(story, "legal-path") == [title]


def test_it_is_not_gone_and_there() -> None:
    story, told = begun()
    told.run(1.1)
    story.live[told.id] = told.row
    assert titles(story, "legal-path") == ["it is gone and there"]
