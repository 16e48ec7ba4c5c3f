"""Sharing shards: a fair part each, nothing twice, nothing to and fro."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from foliot.core.ids import SHARDS, SchedulerId
from foliot.core.lease import Lease, Sharing, fair_share, share

NOW = datetime(2027, 1, 1, tzinfo=UTC)
LATER, EARLIER = NOW + timedelta(seconds=5), NOW - timedelta(seconds=5)
ME, OTHER, THIRD, FOURTH = (SchedulerId(UUID(int=number)) for number in (1, 2, 3, 4))


def free(*shards: int) -> list[Lease]:
    return [Lease(shard, None, 7, None) for shard in shards]


def held(owner: SchedulerId, *shards: int, until: datetime = LATER) -> list[Lease]:
    return [Lease(shard, owner, 7, until) for shard in shards]


def shards(leases: tuple[Lease, ...]) -> set[int]:
    return {lease.shard for lease in leases}


@pytest.mark.parametrize(
    ("nodes", "each"), [(0, 64), (1, 64), (2, 32), (3, 22), (4, 16), (63, 2), (64, 1), (500, 1)]
)
def test_a_fair_share_is_rounded_up(nodes: int, each: int) -> None:
    assert fair_share(SHARDS, nodes) == each


def test_one_node_takes_everything() -> None:
    sharing = share(ME, free(*range(64)), [], NOW, takeovers=False)
    assert shards(sharing.take) == set(range(64))
    assert not sharing.give


def test_a_node_takes_its_share_and_leaves_the_rest() -> None:
    sharing = share(ME, free(*range(64)), [OTHER, THIRD], NOW, takeovers=False)
    assert len(sharing.take) == 22


def test_nodes_that_take_at_once_reach_for_different_shards() -> None:
    mine = shards(share(ME, free(*range(64)), [ME, OTHER], NOW, takeovers=False).take)
    others = shards(share(OTHER, free(*range(64)), [ME, OTHER], NOW, takeovers=False).take)
    assert len(mine & others) < 24


def test_what_another_holds_is_left_alone() -> None:
    leases = held(OTHER, *range(32)) + free(*range(32, 64))
    assert shards(share(ME, leases, [OTHER], NOW, takeovers=True).take) == set(range(32, 64))
    assert share(ME, held(OTHER, *range(64)), [OTHER], NOW, takeovers=True) == Sharing()


def test_a_lease_that_ran_out_is_taken_over_only_when_that_is_allowed() -> None:
    leases = held(OTHER, *range(64), until=EARLIER)
    assert share(ME, leases, [], NOW, takeovers=False) == Sharing()
    assert shards(share(ME, leases, [], NOW, takeovers=True).take) == set(range(64))


def test_what_ran_out_above_the_share_is_freed_for_those_who_have_just_come() -> None:
    leases = held(ME, *range(32)) + held(OTHER, *range(32, 64), until=EARLIER)
    assert share(ME, leases, [ME, THIRD], NOW, takeovers=False) == Sharing()
    sharing = share(ME, leases, [ME, THIRD], NOW, takeovers=True)
    assert (sharing.take, sharing.give) == ((), ())
    assert shards(sharing.free) == set(range(32, 64))
    # With some room, some is taken; above the share, none.
    sharing = share(ME, leases[2:], [ME, THIRD], NOW, takeovers=True)
    assert (len(sharing.take), len(sharing.free)) == (1, 31)
    assert not shards(sharing.take) & shards(sharing.free)
    sharing = share(ME, leases, [ME, THIRD, FOURTH], NOW, takeovers=True)
    assert (len(sharing.give), shards(sharing.free)) == (10, set(range(32, 64)))


def test_a_lease_ends_with_its_last_moment() -> None:
    (lease,) = held(OTHER, 1, until=NOW)
    assert not lease.is_held(NOW)
    assert lease.is_held(NOW - timedelta(microseconds=1))


def test_a_node_above_its_share_gives_back_and_takes_nothing() -> None:
    leases = held(ME, *range(40)) + free(*range(40, 64))
    sharing = share(ME, leases, [ME, OTHER], NOW, takeovers=True)
    assert len(sharing.give) == 8
    assert shards(sharing.give) <= set(range(40))
    assert not sharing.take


def test_a_node_at_its_share_does_nothing() -> None:
    leases = held(ME, *range(32)) + free(*range(32, 64))
    assert share(ME, leases, [ME, OTHER], NOW, takeovers=True) == Sharing()


def test_what_ran_out_is_still_ours_until_somebody_takes_it() -> None:
    leases = held(ME, *range(64), until=EARLIER)
    assert share(ME, leases, [ME], NOW, takeovers=True) == Sharing()
