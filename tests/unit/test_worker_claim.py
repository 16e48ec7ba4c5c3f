"""When a worker asks for work, how far it looks, and when it knows that it was frozen."""

import pytest

from foliot.store.claiming import Look
from foliot.testing.clock import ManualClock
from foliot.worker.claim import ClaimReport, Glances, pause_seconds
from foliot.worker.pulse import Pulse, was_frozen


def test_there_is_no_pause_while_there_is_work() -> None:
    assert pause_seconds(ClaimReport(5, full=False), 0.2, 1.0) == 0.0


@pytest.mark.parametrize("longest", [0.25, 1.0, 3600.0])
def test_idle_polls_begin_at_50_ms_and_grow(longest: float) -> None:
    idle = ClaimReport(0, full=False)
    pauses = [pause_seconds(idle, 0.0, longest)]
    for _ in range(6):
        pauses.append(pause_seconds(idle, pauses[-1], longest))
    assert pauses[0] == 0.05
    assert pauses == sorted(pauses)
    assert pauses[3] < 0.25
    assert pauses[-1] == longest


def test_a_full_worker_waits_to_be_woken() -> None:
    assert pause_seconds(ClaimReport(3, full=True), 0.0, 1.0) == 0.25


def test_a_queue_is_looked_at_near_then_far_then_everywhere() -> None:
    glances = Glances()
    seen = []
    for tenths in range(0, 211, 5):
        look = glances.choose("default", tenths / 10)
        glances.done("default", look, tenths / 10, tenths / 10)
        seen.append(look)
    assert seen[0] is Look.EVERYWHERE
    assert seen[1:5] == [Look.NEAR, Look.FAR, Look.NEAR, Look.FAR]
    assert [place for place, look in enumerate(seen) if look is Look.EVERYWHERE] == [0, 20, 40]


def test_a_look_that_takes_long_is_taken_less_often() -> None:
    glances = Glances()
    glances.done("default", Look.EVERYWHERE, 0.0, 2.0)
    assert glances.choose("default", 39.9) is Look.FAR
    assert glances.choose("default", 40.0) is Look.EVERYWHERE
    glances.done("default", Look.FAR, 0.0, 0.1)
    assert glances.choose("default", 1.9) is Look.NEAR
    assert glances.choose("default", 2.0) is Look.FAR


def test_queues_are_looked_at_each_in_its_own_time() -> None:
    glances = Glances()
    glances.done("a", Look.EVERYWHERE, 0.0, 0.0)
    assert glances.choose("a", 0.5) is Look.NEAR
    assert glances.choose("b", 0.5) is Look.EVERYWHERE


@pytest.mark.parametrize(("gap", "frozen"), [(0.2, False), (14.9, False), (15.1, True)])
def test_a_gap_longer_than_the_lease_is_a_freeze(gap: float, frozen: bool) -> None:
    clock = ManualClock()
    pulse = Pulse(clock)
    clock.seconds += gap
    assert was_frozen(pulse.beat()) is frozen
    assert not was_frozen(pulse.beat())
