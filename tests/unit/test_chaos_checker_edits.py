"""An edit is of the version that it was sent for, and makes the next one."""

from typing import Any
from uuid import UUID

import pytest

from chaos.stories import Story, titles

NAME = "edits-and-pauses"


def edited(*versions: int) -> tuple[Story, UUID]:
    """A job with these versions besides its first."""
    story = Story()
    job = story.job()
    for number in versions:
        story.version(job, number)
    return story, job


def edit(story: Story, job: UUID, made: int, seen: int | None = None, **more: Any) -> None:  # noqa: ANN401
    body = {"priority": 3} | ({} if seen is None else {"If-Match": seen})
    known: dict[str, Any] = {"answer": {"version": made}, "job_id": job, "body": body}
    story.exchange("edit", made, **known | more)


def test_an_edit_makes_the_version_after_the_one_it_names() -> None:
    story, job = edited(2, 3, 4)
    edit(story, job, 2, seen=1)
    edit(story, job, 3)
    edit(story, job, 4, seen=3)
    edit(story, job, 4, seen=11, status=409)
    edit(story, job, 4, seen=3, status=None, answer=None)
    assert titles(story, NAME) == []


@pytest.mark.parametrize("seen", [1, 9])
def test_an_edit_of_another_version_is_refused(seen: int) -> None:
    story, job = edited(2, 3)
    edit(story, job, 3, seen=seen)
    title = f"an edit of version {seen} was acknowledged as version 3"
    assert titles(story, NAME) == [title]


def test_no_two_edits_make_one_version() -> None:
    story, job = edited(2, 3)
    edit(story, job, 2, seen=1)
    edit(story, story.job("other"), 1)
    assert titles(story, NAME) == []
    edit(story, job, 2, seen=1)
    assert titles(story, NAME) == ["two acknowledged edits made the one version 2"]


def test_an_edit_that_was_sent_again_with_its_key_is_one() -> None:
    story, job = edited(2)
    edit(story, job, 2, seen=1, key="k")
    edit(story, job, 2, seen=1, key="k")
    assert titles(story, NAME) == []
