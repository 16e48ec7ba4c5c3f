"""A worker takes what it can begin soon: never idle for want of a claim, never a hoard."""

import pytest

from foliot.worker.appetite import BITE_MAX, UNWRITTEN_MAX, Load, Throughput, bite, room_at


def load(
    *, capacity: int = 10, running: int = 0, waiting: int = 0, unwritten: int = 0, rate: float = 0.0
) -> Load:
    return Load(capacity, running, waiting, unwritten, rate)


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        (load(), 10),
        (load(running=4), 6),
        (load(running=10), 0),
        (load(running=12), 0),
        (load(running=10, rate=500), 50),
        (load(running=9, rate=500), 51),
        (load(running=10, waiting=20, rate=500), 30),
        (load(running=10, waiting=25, rate=500), 25),
        (load(running=10, waiting=26, rate=500), 0),
        (load(running=10, waiting=80, rate=500), 0),
        (load(running=9, waiting=1), 0),
        (load(running=10, rate=5), 0),
        (load(capacity=100_000), BITE_MAX),
        (load(unwritten=UNWRITTEN_MAX), 0),
        (load(unwritten=UNWRITTEN_MAX - 3), 3),
    ],
)
def test_a_bite_is_the_free_slots_and_a_tenth_of_a_second_of_throughput(
    facts: Load, wanted: int
) -> None:
    assert bite(facts) == wanted


@pytest.mark.parametrize("running", [0, 7, 10])
@pytest.mark.parametrize("waiting", [0, 1, 9, 60])
@pytest.mark.parametrize("rate", [0.0, 25.0, 500.0])
def test_nobody_need_ask_for_room_while_more_wait_than_that(
    running: int, waiting: int, rate: float
) -> None:
    full = load(running=running, waiting=waiting, rate=rate)
    left = room_at(full)
    for fewer in range(left + 1, waiting + 1):
        assert bite(load(running=running, waiting=fewer, rate=rate)) == 0
    if left < waiting:
        assert bite(load(running=running, waiting=left, rate=rate)) or left == 0


def test_where_ends_are_not_written_whoever_ends_asks_again() -> None:
    assert room_at(load(waiting=3, unwritten=UNWRITTEN_MAX)) == 3


def test_slow_attempts_are_not_hoarded_after_quick_ones() -> None:
    throughput = Throughput()
    for number in range(1000):
        throughput.count(5.0 + number / 1000)
    assert bite(load(running=10, rate=throughput.per_second(6.0))) > 80
    assert bite(load(running=10, rate=throughput.per_second(7.1))) == 0


def test_throughput_is_that_of_the_last_second() -> None:
    throughput = Throughput()
    assert throughput.per_second(0.0) == 0
    for number in range(100):
        throughput.count(number / 100)
    assert throughput.per_second(0.99) == 100
    assert 45 <= throughput.per_second(1.5) <= 55
    assert throughput.per_second(3.0) == 0
    throughput.count(10.0)
    assert throughput.per_second(10.0) == 1
