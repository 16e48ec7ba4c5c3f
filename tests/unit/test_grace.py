"""When silence counts: only after a whole expiry of watching without a break."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from foliot.core.grace import EXPIRY_SECONDS, GAP_SECONDS_MAX, Reading, Watch, may_judge, watch_on

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


def at(felt: float, told: float | None = None) -> Reading:
    told = felt if told is None else told
    return Reading(felt, NOON + timedelta(seconds=told))


def watching(readings: Iterable[Reading], watch: Watch | None = None) -> Watch | None:
    for reading in readings:
        watch = watch_on(watch, reading)
    return watch


def every_second(first: int, last: int) -> list[Reading]:
    return [at(second) for second in range(first, last + 1)]


def test_who_has_just_started_may_not_judge() -> None:
    assert not may_judge(None)
    assert not may_judge(watching([at(0)]))
    assert not may_judge(watching(every_second(0, 14)))


def test_who_has_watched_for_a_whole_expiry_may_judge() -> None:
    assert may_judge(watching(every_second(0, 15)))
    assert may_judge(watching(every_second(0, 100)))


def test_the_expiry_counts_from_the_first_answer_after_a_break() -> None:
    before = watching(every_second(0, 20))
    assert may_judge(before)
    again = watching(every_second(80, 94), before)
    assert not may_judge(again)
    assert may_judge(watching([at(95)], again))


@pytest.mark.parametrize(
    ("answer", "is_break"),
    [
        (at(20 + GAP_SECONDS_MAX), False),
        (at(20 + GAP_SECONDS_MAX + 0.001), True),  # it was frozen itself
        (at(21, 21 + 60), True),  # the database's clock was set forward
        (at(21, 21 - 60), True),  # or back
        (at(21, 20 + GAP_SECONDS_MAX), False),
    ],
)
def test_a_break_is_a_gap_on_either_clock(answer: Reading, is_break: bool) -> None:
    watch = watching([answer], watching(every_second(0, 20)))
    assert may_judge(watch) is not is_break


def test_a_shorter_expiry_can_be_agreed() -> None:
    assert may_judge(watching(every_second(0, 2)), expiry_seconds=2)
    assert EXPIRY_SECONDS == 15
