"""Hints on their way: what is joined, what fits, what is understood."""

import pytest

from foliot.transport.message import BYTES_MAX, EVERYTHING, NAMES_MAX, Bundle, decode, encode
from foliot.transport.port import SILENCE, Matter


def test_several_hints_about_one_matter_are_one() -> None:
    bundle = Bundle()
    bundle.add(Matter.WORK, ["a"])
    bundle.add(Matter.WORK, ["b", "a"])
    bundle.add(Matter.ADMIT, [])
    assert bundle.take() == {Matter.WORK: {"a", "b"}, Matter.ADMIT: EVERYTHING}
    assert not bundle
    assert bundle.take() == {}


@pytest.mark.parametrize("hints", [(["a"], []), ([], ["a"])])
def test_everything_and_something_is_everything(hints: tuple[list[str], list[str]]) -> None:
    bundle = Bundle()
    for names in hints:
        bundle.add(Matter.WORK, names)
    assert bundle.take() == {Matter.WORK: EVERYTHING}


def test_too_many_names_are_everything() -> None:
    bundle = Bundle()
    bundle.add(Matter.CANCEL, map(str, range(NAMES_MAX)))
    bundle.add(Matter.CANCEL, ["0"])
    assert len(bundle.take()[Matter.CANCEL]) == NAMES_MAX
    bundle.add(Matter.CANCEL, map(str, range(NAMES_MAX + 1)))
    assert bundle.take() == {Matter.CANCEL: EVERYTHING}


def test_what_is_written_is_read_again() -> None:
    hints = {Matter.WORK: frozenset({"mail", "ж", '"'}), Matter.AFTER: EVERYTHING}
    assert decode(encode(hints)) == hints


def test_a_message_has_room_for_everything_that_it_is_about() -> None:
    long = frozenset(f"{number}{'ж' * 100}" for number in range(NAMES_MAX))
    text = encode({Matter.WORK: frozenset({"a"}), Matter.CANCEL: long})
    assert len(text.encode()) <= BYTES_MAX
    assert decode(text) == {Matter.WORK: {"a"}, Matter.CANCEL: EVERYTHING}


@pytest.mark.parametrize("text", ["", "{", "3", "[]", '{"novelty": []}', '{"work": {}}'])
def test_what_is_not_understood_is_passed_over(text: str) -> None:
    assert decode(text) == {}


async def test_without_a_transport_nobody_is_told_and_everyone_polls() -> None:
    told: list[frozenset[str]] = []
    stop = SILENCE.subscribe(Matter.WORK, told.append)
    SILENCE.publish(Matter.WORK, ["a"])
    await SILENCE.run()
    stop()
    assert not SILENCE.flows
    assert not told
