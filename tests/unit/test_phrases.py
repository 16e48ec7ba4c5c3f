"""Small pieces of English."""

import pytest

from foliot.core.phrases import join, ordinal, runs


def test_a_list_ends_with_its_last_word() -> None:
    assert join(["a"]) == "a"
    assert join(["a", "b"]) == "a and b"
    assert join(["a", "b", "c"], "or") == "a, b or c"


@pytest.mark.parametrize(
    ("number", "word"),
    [
        *((1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (10, "10th"), (11, "11th")),
        *((12, "12th"), (13, "13th"), (21, "21st"), (22, "22nd"), (23, "23rd"), (30, "30th")),
    ],
)
def test_ordinals(number: int, word: str) -> None:
    assert ordinal(number) == word


def test_neighbours_form_runs_of_three_or_more() -> None:
    assert runs((1, 2, 3, 5, 7, 8)) == [(1, 3), (5, 5), (7, 7), (8, 8)]
    assert runs(()) == []
