"""Every order of events among a few schedulers: with the guards nothing goes wrong, and without any
one of them something does."""

import os
from typing import Final

import pytest

from chaos.simulation.lease_protocol import (
    NOBODY,
    Apply,
    Found,
    Held,
    Intent,
    Size,
    apply,
    explore,
)

LONG: Final = os.environ.get("FOLIOT_TEST_LONG") == "1"
ONE_SHARD: Final = Size(nodes=3, shards=1, epochs=4, instants=2)
TWO_SHARDS: Final = Size(nodes=3, shards=2, epochs=4 if LONG else 2, instants=0)


@pytest.mark.parametrize("size", [ONE_SHARD, TWO_SHARDS], ids=["one shard", "two shards"])
@pytest.mark.timeout(600)
def test_the_guards_are_enough(size: Size) -> None:
    found = explore(size)
    assert found.wrong is None, found.steps
    assert found.states > 1000


def take_without_comparing_the_epoch(lease: Held, intent: Intent, node: int) -> Held:
    if intent.what == "take":
        return Held(node, intent.seen + 1, is_over=False)
    return apply(lease, intent, node)


def take_without_waiting(lease: Held, intent: Intent, node: int) -> Held:
    if intent.what == "take" and lease.epoch == intent.seen:
        return Held(node, lease.epoch + 1, is_over=False)
    return apply(lease, intent, node)


def take_under_the_same_epoch(lease: Held, intent: Intent, node: int) -> Held:
    after = apply(lease, intent, node)
    return after._replace(epoch=lease.epoch)


def renew_without_a_fence(lease: Held, intent: Intent, node: int) -> Held:
    if intent.what == "renew":
        return lease._replace(owner=node, is_over=False)
    return apply(lease, intent, node)


def give_without_a_fence(lease: Held, intent: Intent, node: int) -> Held:
    if intent.what == "give":
        return Held(NOBODY, lease.epoch, is_over=False)
    return apply(lease, intent, node)


@pytest.mark.parametrize(
    "change",
    [
        take_without_comparing_the_epoch,
        take_without_waiting,
        take_under_the_same_epoch,
        renew_without_a_fence,
        give_without_a_fence,
    ],
    ids=lambda change: str(change.__name__),
)
def test_without_a_guard_there_is_a_way_to_go_wrong(change: Apply) -> None:
    found = explore(ONE_SHARD, change)
    assert found.wrong is not None
    assert found.steps


def test_an_instant_is_fired_twice_unless_it_is_compared() -> None:
    found: Found = explore(ONE_SHARD, may_fire=lambda *_: True)
    assert found.wrong == "an instant was fired twice"
