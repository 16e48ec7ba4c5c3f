"""When an idle worker goes to its queues: at once if it is one of few, else some time soon."""

import asyncio

import pytest

from foliot.runtime.clock import SystemClock
from foliot.testing.loopback import Loopback
from foliot.worker.waking import (
    AT_ONCE,
    DEAF,
    IDLE_SECONDS_MAX,
    Ear,
    Waking,
    wake_delay_seconds,
)

CHANCES = [number / 1000 for number in range(1000)]


@pytest.mark.parametrize("workers", [0, 1, 2, AT_ONCE])
def test_few_workers_all_go_at_once(workers: int) -> None:
    assert {wake_delay_seconds(workers, chance) for chance in CHANCES} == {0.0}


@pytest.mark.parametrize("workers", [5, 20, 100, 1000])
def test_of_many_about_four_go_at_once_and_the_others_within_a_quarter_of_a_second(
    workers: int,
) -> None:
    delays = [wake_delay_seconds(workers, chance) for chance in CHANCES]
    at_once = sum(delay == 0.0 for delay in delays) / len(delays) * workers
    assert at_once == pytest.approx(AT_ONCE, abs=1)
    later = sorted(delay for delay in delays if delay)
    assert later[-1] < IDLE_SECONDS_MAX
    # Evenly: the one in the middle comes in the middle of the time.
    assert later[len(later) // 2] == pytest.approx(IDLE_SECONDS_MAX / 2, rel=0.05)


@pytest.mark.parametrize(
    ("serves", "told", "taken"),
    [
        (["a", "b"], {"a"}, {"a"}),
        (["a", "b"], {"a", "c"}, {"a"}),
        (["*"], {"c"}, {"c"}),
    ],
)
async def test_it_hears_of_the_queues_that_it_serves(
    serves: list[str], told: set[str], taken: set[str]
) -> None:
    waking = Waking(serves)
    waking.hear(frozenset(told))
    await waking.hint.wait(3600, SystemClock())
    assert waking.take() == frozenset(taken)
    assert waking.take() is None, "told once"


async def test_a_hint_about_the_queues_of_others_does_not_wake_it() -> None:
    waking = Waking(["a"])
    waking.hear(frozenset({"b"}))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(waking.hint.wait(3600, SystemClock()), 0.02)
    assert waking.take() is None


async def test_a_hint_about_everything_is_one_about_all_its_queues() -> None:
    waking = Waking(["a"])
    waking.hear(frozenset({"a"}))
    waking.hear(frozenset())
    await waking.hint.wait(3600, SystemClock())
    assert waking.take() is None


async def test_one_of_very_many_is_woken_later_unless_it_has_looked_by_then() -> None:
    waking = Waking(["a"])
    waking.workers = 10**9
    waking.hear(frozenset({"a"}))
    waking.hear(frozenset({"a"}))
    await waking.hint.wait(3600, SystemClock())
    assert waking.take() == frozenset({"a"})
    waking.hear(frozenset({"a"}))
    waking.take()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(waking.hint.wait(3600, SystemClock()), 2 * IDLE_SECONDS_MAX)
    waking.close()


def test_the_poll_is_rare_only_while_hints_are_known_to_come() -> None:
    transport = Loopback()
    ear = Ear(transport, poll_seconds=60)
    assert ear.longest_seconds == IDLE_SECONDS_MAX
    transport.begin()
    assert ear.longest_seconds == 60
    transport.break_off()
    assert ear.longest_seconds == IDLE_SECONDS_MAX
    assert DEAF.longest_seconds == IDLE_SECONDS_MAX
