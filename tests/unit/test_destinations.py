"""Places at a host: handed on, given up, and waited for no longer than is said."""

import asyncio
from uuid import UUID

import pytest

from foliot.testing.clock import ManualClock
from foliot.worker.http import destinations as module
from foliot.worker.http.destinations import Destination, Destinations, Leave, Word
from foliot.worker.tasks import Held

HOST = Destination(UUID(int=1), "http", "slow.example", 80)


@pytest.fixture
def destinations() -> Destinations:
    """One call at a time, and nothing is spread."""
    return Destinations(1, ManualClock(), lambda: 0.0)


async def ask(destinations: Destinations) -> Leave:
    leave = await destinations.ask(HOST)
    assert isinstance(leave, Leave)
    return leave


async def test_a_place_goes_to_who_waits_for_it(destinations: Destinations) -> None:
    first = await ask(destinations)
    waiting = asyncio.ensure_future(ask(destinations))
    await asyncio.sleep(0)
    destinations.end(first, Word.ANSWERED)
    destinations.end(await waiting, Word.ANSWERED)
    await ask(destinations)


async def test_a_wait_that_is_over_as_a_place_comes_free_is_held(
    destinations: Destinations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one turn of the loop its time runs out, and then the call before it ends."""
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.0)
    first = await ask(destinations)
    waiting = asyncio.ensure_future(destinations.ask(HOST))
    await asyncio.sleep(0)  # it waits now, and its time runs out in the next turn
    asyncio.get_running_loop().call_soon(destinations.end, first, Word.ANSWERED)
    assert isinstance(await waiting, Held)
    await ask(destinations)


async def test_who_is_stopped_as_a_place_comes_free_leaves_it_to_others(
    destinations: Destinations,
) -> None:
    first = await ask(destinations)
    waiting = asyncio.ensure_future(destinations.ask(HOST))
    await asyncio.sleep(0)
    waiting.cancel()
    destinations.end(first, Word.ANSWERED)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await ask(destinations)


async def test_who_is_stopped_with_a_place_in_hand_passes_it_on(
    destinations: Destinations,
) -> None:
    first = await ask(destinations)
    waiting = asyncio.ensure_future(destinations.ask(HOST))
    await asyncio.sleep(0)
    destinations.end(first, Word.ANSWERED)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await ask(destinations)
