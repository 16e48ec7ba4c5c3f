"""The database's clock felt from here: right to what its answers allow, none early."""

from datetime import UTC, datetime, timedelta

import pytest

from foliot.runtime.server_time import DRIFT, ServerTime
from foliot.testing.clock import ManualClock

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


class Server:
    """Its clock runs with ours; an answer takes `there` seconds on the way and `back` again."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.ahead = 0.0
        self.there = self.back = 0.001

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.clock.seconds + self.ahead)

    async def ask(self) -> datetime:
        await self.clock.sleep(self.there)
        told = self.now()
        await self.clock.sleep(self.back)
        return told


@pytest.fixture
def server() -> Server:
    return Server(ManualClock())


@pytest.fixture
def time(server: Server) -> ServerTime:
    return ServerTime(server.ask, server.clock)


def apart(one: datetime, other: datetime) -> float:
    return abs((one - other).total_seconds())


async def test_nothing_is_known_before_it_was_asked(time: ServerTime) -> None:
    assert not time.is_known
    with pytest.raises(RuntimeError, match="has not been asked"):
        time.now()
    await time.learn()
    assert time.is_known


async def test_an_even_round_trip_tells_the_time(server: Server, time: ServerTime) -> None:
    await time.learn()
    assert apart(time.now(), server.now()) < 1e-5
    assert time.seconds_until(server.now() + timedelta(seconds=3)) == pytest.approx(3, abs=1e-5)


@pytest.mark.parametrize(("there", "back"), [(0.0, 0.2), (0.2, 0.0), (0.05, 0.15)])
async def test_what_is_past_or_to_come_is_so_for_the_database(
    server: Server, time: ServerTime, there: float, back: float
) -> None:
    """However uneven the ways there and back are."""
    server.there, server.back = there, back
    await time.learn()
    assert time.past() <= server.now() + timedelta(microseconds=2)
    assert apart(time.past(), server.now()) <= there + back + 1e-5
    assert time.future() >= server.now() - timedelta(microseconds=2)
    assert apart(time.future(), server.now()) <= there + back + 1e-5
    soon = server.now() + timedelta(seconds=1)
    await server.clock.sleep(time.seconds_until_past(soon))
    assert server.now() >= soon - timedelta(microseconds=2)


async def test_the_quickest_answer_is_believed(server: Server, time: ServerTime) -> None:
    for back in (0.3, 0.001, 0.5):
        server.back = back
        await time.learn()
    assert apart(time.now(), server.now()) < 0.001


async def test_an_old_answer_gives_way_to_a_newer_one(server: Server, time: ServerTime) -> None:
    await time.learn()
    server.there = server.back = 0.002
    await server.clock.sleep(10)
    server.ahead = 10 * DRIFT / 2
    await time.learn()
    assert apart(time.now(), server.now()) < 1e-5


@pytest.mark.parametrize("step", [-3600.0, -0.05, 0.05, 3600.0])
async def test_a_clock_that_was_set_is_believed_at_once(
    server: Server, time: ServerTime, step: float
) -> None:
    for _ in range(5):
        await time.learn()
    server.ahead += step
    server.there = server.back = 0.004  # a worse answer than all before
    await time.learn()
    assert apart(time.now(), server.now()) < 0.01


async def test_what_was_forgotten_must_be_asked_again(time: ServerTime) -> None:
    await time.learn()
    time.forget()
    assert not time.is_known
