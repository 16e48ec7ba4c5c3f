"""How far back a look goes: without a bound as often as that is cheap, and every ten seconds."""

from datetime import UTC, datetime, timedelta

from foliot.scheduler.lookback import Lookback
from foliot.testing.clock import ManualClock

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)
BACK = timedelta(seconds=2)


def look(lookback: Lookback, clock: ManualClock, takes: float) -> datetime | None:
    low = lookback.low(NOON)
    clock.seconds += takes
    lookback.done()
    return low


def test_a_look_that_costs_little_never_has_a_bound() -> None:
    clock = ManualClock()
    lookback = Lookback(clock, BACK)
    for _ in range(20):
        assert look(lookback, clock, 0.005) is None
        clock.seconds += 0.15


def test_a_look_that_costs_much_is_rare() -> None:
    clock = ManualClock()
    lookback = Lookback(clock, BACK)
    assert look(lookback, clock, 0.1) is None
    clock.seconds += 1.9
    assert look(lookback, clock, 0.001) == NOON - BACK
    clock.seconds += 0.1
    assert look(lookback, clock, 0.1) is None


def test_whatever_it_costs_there_is_one_every_ten_seconds() -> None:
    clock = ManualClock()
    lookback = Lookback(clock, BACK)
    assert look(lookback, clock, 60.0) is None
    clock.seconds += 9.9
    assert look(lookback, clock, 0.0) == NOON - BACK
    clock.seconds += 0.1
    assert look(lookback, clock, 0.0) is None


def test_a_look_that_failed_does_not_keep_the_near_ones_from_being_made() -> None:
    """Under a pinned snapshot each would fail, and nobody would look at what is due now."""
    clock = ManualClock()
    lookback = Lookback(clock, BACK)
    assert lookback.low(NOON) is None
    clock.seconds += 5
    assert look(lookback, clock, 0.001) == NOON - BACK
    clock.seconds += 5
    assert lookback.low(NOON) is None
