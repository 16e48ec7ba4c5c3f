"""An attempt that fails without having told the sink so is found."""

from typing import Any

import pytest

from chaos.stories import Story, judge, titles

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
        ({"type": "WORKER_LOST"}, ["begun"]),
        ({"type": "EXIT_CODE"}, ["begun", "poison"]),
        ({"type": "TIMEOUT"}, ["begun"]),
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
