"""Several lines as one: in order, each instant once, and what runs before what is held."""

from datetime import UTC, datetime, timedelta

import pytest

from foliot.core.model import SkipReason
from foliot.core.schedule.timeline import Listed, Occurrence
from foliot.core.schedule.union import Span, Union

START = datetime(2027, 1, 1, tzinfo=UTC)
GAP = SkipReason.DST_GAP


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


def span(*minutes: int, held: SkipReason | None = None, note: str = "") -> Span:
    found = tuple(Occurrence(minute(each), note, held) for each in minutes)
    return Span(minute(min(minutes)), minute(max(minutes) + 1), Listed(found))


def test_lines_that_overlap_are_one_in_order_and_coincide_once() -> None:
    union = Union((span(1, 4, 9), span(2, 4), span(20)))
    found, at = [], START
    while (one := union.next(at)) is not None:
        at = one.instant
        found.append(at)
    assert found == [minute(each) for each in (1, 2, 4, 9, 20)]
    backward, at = [], minute(100)
    while (one := union.previous(at)) is not None:
        at = one.instant
        backward.append(at)
    assert backward == found[::-1]
    assert union.count(START, minute(100)) == 5
    assert union.count(minute(2), minute(9)) == 2


@pytest.mark.parametrize("spans", [(0, 1), (1, 0)])
def test_of_two_that_coincide_the_one_that_runs_stands(spans: tuple[int, int]) -> None:
    both = (span(3, 5, held=GAP), span(5))
    union = Union(tuple(both[each] for each in spans))
    assert [skip.from_ for skip in union.held(START, minute(9))] == [minute(3)]
    after, before = union.next(minute(3)), union.previous(minute(9))
    assert after == before == Occurrence(minute(5), "")


def test_what_is_held_twice_is_held_once_and_the_first_stands() -> None:
    union = Union((span(5, held=GAP, note="near"), span(5, 7, held=GAP, note="far")))
    assert [skip.from_ for skip in union.held(START, minute(9))] == [minute(5), minute(7)]
    stands = union.next(START)
    assert stands is not None
    assert stands.note == "near"
