"""While the database stood still, what was under way took longer, by that much and no more."""

from datetime import timedelta

import pytest

from chaos.checker.history import History
from chaos.facts import LONG_OUTAGE, STALL, STALLED
from chaos.stories import Story, at, judge, titles

A_SECOND = timedelta(seconds=1)


def stalled(*spans: tuple[float, float]) -> Story:
    story = Story()
    for began, healed in spans:
        story.fault(STALL, "", began, healed)
    return story


@pytest.mark.parametrize(
    ("moment", "earlier"),
    [
        (10.0, 9.0),  # it began just then
        (15.0, 9.0),  # within it
        (20.5, 9.5),
        (21.0, 20.0),  # it was over by then
        (40.5, 29.5),  # another
        (9.0, 8.0),
    ],
)
def test_time_at_a_standstill_does_not_count(moment: float, earlier: float) -> None:
    history = History(stalled((10, 20), (30, 40)).facts())
    assert history.earlier(at(moment), A_SECOND) == at(earlier)


def test_a_long_outage_counts_if_it_stood_still() -> None:
    story = Story()
    story.fault(LONG_OUTAGE, "", 10, 20, how="gone")
    assert History(story.facts()).earlier(at(20), A_SECOND) == at(19)
    story.fault(LONG_OUTAGE, "", 10, 20, how=STALLED)
    assert History(story.facts()).earlier(at(20), A_SECOND) == at(9)


def test_a_claim_that_was_held_up_has_the_time_of_its_beginning() -> None:
    def verdict(healed: float) -> int:
        story = stalled((10, healed))
        story.fault("clock off", "api", 0, 0, seconds=-200)
        story.fire(story.job(), 1).change(25, status="RUNNING", claimed_at=at(9))
        return len(judge(story, "clocks-ignored").violations)

    assert verdict(healed=24) == 0
    assert verdict(healed=17) == 1


def test_who_stood_still_in_a_transaction_was_not_idle_for_as_long() -> None:
    story = stalled((10, 17))
    story.sample(17.1, idle_in_transaction_seconds=8.5)
    assert titles(story, "quiet") == []
    story.sample(30, idle_in_transaction_seconds=8.5)
    assert titles(story, "quiet") == ["idle in a transaction for 8.5 s"]
