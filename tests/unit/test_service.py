"""Work that belongs to a block, questions that are shared, waiting that can be ended."""

import asyncio

import pytest

from foliot.runtime.service import SharedAnswer, background, until


async def test_who_stops_waiting_does_not_wait_for_the_question_to_be_withdrawn() -> None:
    withdrawn = asyncio.Event()
    released = asyncio.Event()

    async def ask() -> str:
        try:
            await released.wait()
        except asyncio.CancelledError:
            withdrawn.set()
            raise
        return "late"

    shared = SharedAnswer(ask)
    with pytest.raises(TimeoutError):
        await shared.get(within_seconds=0.01)
    assert not withdrawn.is_set()
    released.set()
    assert await shared.get(within_seconds=5) == "late"


async def test_who_asks_meanwhile_gets_the_same_answer() -> None:
    asked = 0

    async def ask() -> int:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return asked

    shared = SharedAnswer(ask)
    answers = await asyncio.gather(*(shared.get(within_seconds=5) for _ in range(3)))
    assert answers == [1, 1, 1]
    assert await shared.get(within_seconds=5) == 2


async def test_closing_ends_a_question_under_way() -> None:
    shared = SharedAnswer(asyncio.Event().wait)
    with pytest.raises(TimeoutError):
        await shared.get(within_seconds=0.01)
    await shared.close()
    assert len(asyncio.all_tasks()) == 1


async def test_background_work_ends_with_its_block() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with background(work(), name="work"):
        await asyncio.sleep(0)
        assert not ended.is_set()
    assert ended.is_set()


async def test_work_is_cancelled_when_asked_to_stop() -> None:
    stop = asyncio.Event()
    cleaned_up = False

    async def work() -> None:
        nonlocal cleaned_up
        stop.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned_up = True

    await until(stop, work())
    assert cleaned_up


async def test_an_error_of_the_work_is_raised() -> None:
    async def work() -> None:
        raise LookupError("no port")

    with pytest.raises(LookupError, match="no port"):
        await until(asyncio.Event(), work())


async def test_an_error_while_stopping_is_raised_too() -> None:
    stop = asyncio.Event()

    async def work() -> None:
        stop.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise LookupError("not undone")

    with pytest.raises(LookupError, match="not undone"):
        await until(stop, work())
