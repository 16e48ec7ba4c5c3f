"""Many that go to one place: a few are let through, the others know when to come again."""

import pytest

from foliot.worker.crowds import (
    FIRST_GUESS_SECONDS,
    HOLD_SECONDS_MAX,
    HOLD_SECONDS_MIN,
    PLACES_MAX,
    Crowds,
)


def test_a_few_go_and_as_many_wait_and_the_others_come_again_one_after_another() -> None:
    crowds = Crowds(2)
    assert [crowds.enter("a", 0.0) for _ in range(4)] == [None] * 4
    waits = [crowds.enter("a", 0.0) for _ in range(3)]
    assert waits == pytest.approx([FIRST_GUESS_SECONDS / 4 * n for n in (1, 2, 3)])
    assert crowds.hold("a", 9.0) == pytest.approx(FIRST_GUESS_SECONDS / 4), "their turns are over"
    assert crowds.enter("b", 0.0) is None, "another place is free"


def test_who_leaves_makes_room() -> None:
    crowds = Crowds(1)
    for _ in range(2):
        crowds.enter("a", 0.0)
    assert crowds.enter("a", 0.0) is not None
    crowds.leave("a", 0.1)
    assert crowds.enter("a", 0.0) is None


def test_a_fast_place_is_asked_again_soon_and_a_slow_one_late() -> None:
    for seconds, wait in ((0.001, HOLD_SECONDS_MIN), (15.0, 7.5)):
        crowds = Crowds(1)
        for _ in range(100):
            crowds.enter("a", 0.0)
            crowds.leave("a", seconds)
        crowds.enter("a", 0.0)
        assert round(crowds.hold("a", 0.0), 2) == wait
        crowds.leave("a", seconds)
    assert max(crowds.hold("a", 0.0) for _ in range(1000)) == HOLD_SECONDS_MAX


def test_what_says_nothing_about_a_place_changes_no_guess() -> None:
    crowds = Crowds(1)
    crowds.enter("a", 0.0)
    crowds.leave("a", None)
    crowds.enter("a", 0.0)
    assert crowds.hold("a", 0.0) == FIRST_GUESS_SECONDS / 2


def test_places_where_nobody_is_are_forgotten() -> None:
    crowds = Crowds(1)
    crowds.enter("busy", 0.0)
    for n in range(PLACES_MAX):
        crowds.enter(n, 0.0)
        crowds.leave(n, 9.0)
    assert len(crowds._crowds) <= PLACES_MAX
    crowds.enter("busy", 0.0)
    assert crowds.enter("busy", 0.0) is not None, "who is under way still counts"
