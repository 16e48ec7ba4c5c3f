"""Lines of occurrences: their ends, and what lies exactly on them."""

from datetime import UTC, datetime, timedelta

import pytest

from foliot.core.ids import microseconds
from foliot.core.model import SkipReason
from foliot.core.schedule.timeline import (
    Bounded,
    IntervalLine,
    Listed,
    Moved,
    Occurrence,
    Skip,
    Timeline,
)

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


EVERY_MINUTE = IntervalLine(microseconds(NOON), 60_000_000)
THREE = Listed((Occurrence(at(0)), Occurrence(at(1), "why", SkipReason.DST_GAP), Occurrence(at(2))))


@pytest.mark.parametrize(
    ("line", "after", "until", "count"),
    [
        (EVERY_MINUTE, -5, 2, 3),
        (EVERY_MINUTE, 0, 2, 2),
        (EVERY_MINUTE, 0, 1.99, 1),
        (EVERY_MINUTE, -5, -1, 0),
        (EVERY_MINUTE, 2, 0, 0),
        (THREE, -5, 5, 3),
        (THREE, 0, 1, 1),
        (THREE, 1, 0, 0),
        (Bounded(EVERY_MINUTE, at(1), at(4)), -5, 10, 2),
        (Bounded(EVERY_MINUTE, at(1), at(4)), 10, 20, 0),
        (Bounded(EVERY_MINUTE, at(1)), -5, 10, 9),
        (Moved(EVERY_MINUTE, "moved", timedelta(minutes=3)), 0, 4, 2),
    ],
)
def test_a_count_takes_its_end_and_not_its_beginning(
    line: Timeline, after: float, until: float, count: int
) -> None:
    assert line.count(at(after), at(until)) == count


@pytest.mark.parametrize("line", [EVERY_MINUTE, THREE])
def test_nothing_comes_before_the_first(line: Timeline) -> None:
    assert line.next(at(-100)) == Occurrence(at(0))
    assert line.previous(at(0)) is None
    assert line.previous(at(0.5)) == Occurrence(at(0))


def test_a_bounded_line_leaves_out_both_its_ends() -> None:
    line = Bounded(EVERY_MINUTE, at(1), at(3))
    assert line.next(at(-5)) == line.previous(at(100)) == Occurrence(at(2))
    assert line.next(at(2)) is None
    assert line.previous(at(2)) is None
    assert line.next_fire(at(2)) is None
    assert line.previous_fire(at(2)) is None


def test_held_ones_are_passed_over_by_what_fires() -> None:
    assert THREE.next_fire(at(0)) == Occurrence(at(2))
    assert THREE.previous_fire(at(2)) == Occurrence(at(0))
    assert list(THREE.held(at(0), at(1))) == [Skip(at(1), at(1), 1, SkipReason.DST_GAP)]
    assert list(THREE.held(at(1), at(2))) == []


def test_a_moved_line_keeps_what_is_held_and_both_notes() -> None:
    line = Moved(THREE, "moved", timedelta(minutes=10))
    assert line.next(at(10)) == Occurrence(at(11), "moved; why", SkipReason.DST_GAP)
    assert line.previous(at(11)) == Occurrence(at(10), "moved")
    assert list(line.held(at(0), at(20))) == [Skip(at(11), at(11), 1, SkipReason.DST_GAP)]
