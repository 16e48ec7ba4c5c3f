"""Many deadlines on one timer: each rings once, in order, unless moved or dropped."""

import asyncio
import time
from collections.abc import Callable

import pytest
import uvloop

from foliot.runtime.alarms import Alarms

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


class Rung:
    def __init__(self, *, until: int) -> None:
        self.keys: list[int] = []
        self._until = until
        self.done = asyncio.Event()

    def ring(self, key: int) -> None:
        self.keys.append(key)
        if key == self._until:
            self.done.set()


async def test_alarms_ring_in_the_order_of_their_times() -> None:
    rung = Rung(until=3)
    alarms = Alarms(rung.ring)
    for key, seconds in ((3, 0.03), (1, 0.0), (2, 0.01)):
        alarms.set(key, seconds)
    await rung.done.wait()
    assert rung.keys == [1, 2, 3]
    assert 1 not in alarms


async def test_an_alarm_that_is_moved_rings_once_at_its_new_time() -> None:
    rung = Rung(until=2)
    alarms = Alarms(rung.ring)
    alarms.set(1, 0.0)
    alarms.set(1, 0.02)
    alarms.set(3, 0.01)
    alarms.set(2, 0.03)
    await rung.done.wait()
    assert rung.keys == [3, 1, 2]


async def test_an_alarm_that_is_dropped_does_not_ring() -> None:
    rung = Rung(until=2)
    alarms = Alarms(rung.ring)
    alarms.set(1, 0.0)
    alarms.set(2, 0.01)
    alarms.drop(1)
    alarms.drop(4)
    await rung.done.wait()
    assert rung.keys == [2]


async def test_an_alarm_that_fails_keeps_no_other_from_ringing() -> None:
    rung = Rung(until=2)
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: told.append(what))

    def ring(key: int) -> None:
        if key == 1:
            raise ValueError("not this one")
        rung.ring(key)

    alarms = Alarms(ring)
    alarms.set(1, 0.0)
    alarms.set(2, 0.01)
    async with asyncio.timeout(5):
        await rung.done.wait()
    assert len(told) == 1


async def test_an_alarm_may_set_the_next_one() -> None:
    rung = Rung(until=5)

    def ring(key: int) -> None:
        rung.ring(key)
        if key < 5:
            alarms.set(key + 1, 0.0)

    alarms = Alarms(ring)
    alarms.set(1, 0.0)
    await rung.done.wait()
    assert rung.keys == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_alarms_may_be_set_while_others_are_overdue(loop_factory: LoopFactory) -> None:
    troubles: list[object] = []

    async def scenario() -> None:
        rung = Rung(until=3)
        asyncio.get_running_loop().set_exception_handler(lambda _, said: troubles.append(said))

        def ring(key: int) -> None:
            rung.ring(key)
            if key == 1:
                alarms.set(3, 0.01)
                alarms.set(4, 300)

        alarms = Alarms(ring)
        for key in (1, 2):
            alarms.set(key, 0.001)
        time.sleep(0.01)  # noqa: ASYNC251 - both are to come up in one turn
        alarms.set(5, 300)
        await rung.done.wait()
        assert rung.keys == [1, 2, 3]
        alarms.close()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(scenario())
    assert troubles == []


async def test_dropped_alarms_do_not_pile_up() -> None:
    rung = Rung(until=-1)
    alarms = Alarms(rung.ring)
    for key in range(20_000):
        alarms.set(key, 300)
        alarms.drop(key)
    alarms.set(-1, 0)
    assert len(alarms._heap) < 2000
    await rung.done.wait()
    alarms.close()
    assert -1 not in alarms
