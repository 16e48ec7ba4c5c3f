"""What starts has the limits on its row that its job asks for: without them nobody counts it."""

from typing import Any

import pytest

from chaos.stories import Story, Told, judge, titles

NAME = "limits-held"


def asking(keys: list[str] | None = None, **definition: Any) -> tuple[Story, Told]:  # noqa: ANN401
    """An execution of a job with this definition; JOB in a key stands for the job's id."""
    story = Story()
    job = story.job(**definition)
    named = keys and [key.replace("JOB", str(job)) for key in keys]
    return story, story.fire(job, 1, limit_keys=named)


@pytest.mark.parametrize(
    ("definition", "keys"),
    [
        ({"concurrency": {"limit": 2, "key": None}}, ["job:JOB"]),
        ({"rate_limit": {"count": 2, "period_seconds": 2}}, ["job:JOB"]),
        ({"concurrency": {"limit": 2, "key": "a"}}, ["key:1:a"]),
        ({"concurrency": {"limit": 2, "key": "a"}}, ["key:1:of-the-request"]),
        (
            {"concurrency": {"limit": 2, "key": "a"}, "rate_limit": {"count": 2}},
            ["tenant:1", "job:JOB", "key:1:a"],
        ),
        ({"concurrency": {"limit": None, "key": "a"}, "rate_limit": {"count": None}}, None),
        ({}, None),
    ],
)
def test_what_has_the_limits_of_its_job_may_start(
    definition: dict[str, Any], keys: list[str] | None
) -> None:
    story, told = asking(keys, **definition)
    told.claim(2)
    assert titles(story, NAME) == []


@pytest.mark.parametrize(
    ("definition", "keys", "missing"),
    [
        ({"concurrency": {"limit": 2}}, None, "job:JOB"),
        ({"concurrency": {"limit": 2}}, ["key:1:a"], "job:JOB"),
        ({"rate_limit": {"count": 2}}, ["job:another"], "job:JOB"),
        ({"concurrency": {"limit": 2, "key": "a"}}, ["job:JOB"], "key:"),
        (
            {"concurrency": {"limit": 2, "key": "a"}, "rate_limit": {"count": 2}},
            ["job:JOB"],
            "key:",
        ),
    ],
)
def test_what_starts_without_a_limit_of_its_job_is_found(
    definition: dict[str, Any], keys: list[str] | None, missing: str
) -> None:
    story, told = asking(keys, **definition)
    assert titles(story, NAME) == []  # what waits has not started
    told.claim(2)
    (witness,) = judge(story, NAME).violations
    limit = missing.replace("JOB", str(told.row["job_id"]))
    assert witness.title == f"it started without the limit {limit} that its job asks for"
    assert len(witness.records) == 2


def test_a_job_whose_limit_was_changed_is_passed_over() -> None:
    story, told = asking(None, concurrency={"limit": 2})
    told.claim(2)
    assert len(titles(story, NAME)) == 1
    story.version(told.row["job_id"], 1, definition=story.versions[0]["definition"])
    assert len(titles(story, NAME)) == 1
    lifted = story.versions[0]["definition"] | {"concurrency": {"limit": None}}
    story.version(told.row["job_id"], 1.5, definition=lifted)
    assert titles(story, NAME) == []
