"""Nothing is claimed from a paused queue, and a pause that was acknowledged has happened."""

from typing import Any

from chaos.checker.history import History
from chaos.measures import waits
from chaos.stories import Story, begun, judge, titles

CLAIMED = "claimed from default, which was paused"


def test_claims_before_and_after_a_pause_are_fine() -> None:
    story, told = begun()
    told.claim(2).leave(2.5, "HAND_BACK").release(2.6)
    story.gate(3, paused=True)
    story.gate(5, paused=False)
    told.claim(5.01).end(6)
    verdict = judge(story, "pauses-hold")
    assert (verdict.checked, verdict.violations) == (1, ())
    assert waits(History(story.facts())) == []


def test_a_claim_during_a_pause_is_found() -> None:
    story, told = begun()
    story.gate(1.5, paused=True)
    story.gate(1.7, paused=True)
    told.claim(1.8).end(3)
    (witness,) = judge(story, "pauses-hold").violations
    assert (witness.title, len(witness.records)) == (CLAIMED, 2)
    assert judge(story, "pauses-hold").checked == 1


def test_a_pause_that_nobody_ends_holds_to_the_end() -> None:
    story, told = begun()
    story.gate(1.5, paused=True)
    told.claim(50).end(51)
    assert titles(story, "pauses-hold") == [CLAIMED]


def test_another_queue_is_another_matter() -> None:
    story, told = begun()
    story.gate(1.5, paused=True, name="red")
    told.claim(2).end(3)
    assert titles(story, "pauses-hold") == []


def asked(action: str, **more: Any) -> Story:  # noqa: ANN401
    story = Story()
    story.gate(1, paused=True)
    story.gate(2, paused=False)
    story.exchange(action, 3, body={"queue": "default"}, **more)
    return story


def test_what_was_acknowledged_has_happened() -> None:
    assert titles(asked("resume queue"), "pauses-hold") == []
    assert titles(asked("pause queue"), "pauses-hold") == [
        "an acknowledged pause queue that nothing tells of"
    ]
    assert titles(asked("pause queue", status=503), "pauses-hold") == []


def test_an_answer_that_is_told_again_may_be_of_the_past() -> None:
    story = asked("pause queue", key="k")
    story.exchange("pause queue", 0.9, None, key="k", body={"queue": "default"})
    story.exchanges.reverse()
    assert titles(story, "pauses-hold") == []


def test_a_queue_that_nobody_ever_changed_is_open() -> None:
    story = Story()
    story.exchange("resume queue", 1, body={"queue": "red"})
    verdict = judge(story, "pauses-hold")
    assert (verdict.checked, verdict.violations) == (0, ()), "only pauses count"
    story.exchange("pause queue", 2, body={"queue": "red"})
    assert len(titles(story, "pauses-hold")) == 1
