"""Any number of nodes that come, go, freeze and act on what they read long ago: never two owners
under one epoch, and once they are let be, everything has an owner and nothing moves."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.ids import SchedulerId
from foliot.core.lease import Lease, fair_share, share

SHARDS, LEASE = 8, timedelta(seconds=10)
START = datetime(2027, 1, 1, tzinfo=UTC)
NODES = [SchedulerId(UUID(int=number)) for number in range(1, 6)]


@dataclass
class Table:
    """The rows and the only changes they allow: each compares with what its caller has seen."""

    now: datetime = START
    leases: list[Lease] = field(
        default_factory=lambda: [Lease(shard, None, 0, None) for shard in range(SHARDS)]
    )
    seen_at: dict[SchedulerId, datetime] = field(default_factory=dict)
    owners: dict[tuple[int, int], SchedulerId] = field(default_factory=dict)
    moves: int = 0

    def live(self) -> list[SchedulerId]:
        return [node for node, seen in self.seen_at.items() if seen > self.now - LEASE]

    def renew(self, node: SchedulerId) -> None:
        self.seen_at[node] = self.now
        for lease in self.leases:
            if lease.owner == node:
                self.leases[lease.shard] = replace(lease, expires_at=self.now + LEASE)

    def take(self, node: SchedulerId, wanted: tuple[Lease, ...]) -> None:
        for seen in wanted:
            lease = self.leases[seen.shard]
            if lease.epoch != seen.epoch or lease.is_held(self.now):
                continue
            self.leases[seen.shard] = Lease(seen.shard, node, lease.epoch + 1, self.now + LEASE)
            key = (seen.shard, lease.epoch + 1)
            assert self.owners.setdefault(key, node) == node, "two owners under one epoch"
            self.moves += 1

    def give(self, node: SchedulerId, unwanted: tuple[Lease, ...]) -> None:
        for seen in unwanted:
            lease = self.leases[seen.shard]
            if (lease.owner, lease.epoch) == (node, seen.epoch):
                self.leases[seen.shard] = Lease(seen.shard, None, lease.epoch, None)
                self.moves += 1


@dataclass(frozen=True)
class View:
    """What a node read, and acts on now or later."""

    leases: tuple[Lease, ...]
    live: tuple[SchedulerId, ...]
    now: datetime


def read(table: Table) -> View:
    return View(tuple(table.leases), tuple(table.live()), table.now)


def act(table: Table, node: SchedulerId, view: View) -> None:
    sharing = share(node, view.leases, view.live, view.now, takeovers=True)
    table.give(node, sharing.give)
    table.take(node, sharing.take)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["read", "act", "pass", "renew", "leave"]),
        st.sampled_from(NODES),
        st.sampled_from([0, 1, 4, 11]),
    ),
    max_size=60,
)


def play(table: Table, steps: list[tuple[str, SchedulerId, int]]) -> None:
    views: dict[SchedulerId, View] = {}
    for what, node, seconds in steps:
        table.now += timedelta(seconds=seconds)
        if what == "read":
            views[node] = read(table)
        elif what == "act" and node in views:
            act(table, node, views[node])
        elif what == "pass":
            table.renew(node)
            act(table, node, read(table))
        elif what == "renew":
            table.renew(node)
        elif what == "leave":
            mine = tuple(lease for lease in table.leases if lease.owner == node)
            table.give(node, mine)
            table.seen_at.pop(node, None)


@settings(max_examples=300, deadline=None)
@given(
    STEPS,
    st.lists(st.sampled_from(NODES), min_size=1, max_size=5, unique=True),
    st.randoms(use_true_random=False),
)
def test_whatever_happened_it_settles_and_stays(
    steps: list[tuple[str, SchedulerId, int]], live: list[SchedulerId], chance: Random
) -> None:
    table = Table()
    play(table, steps)
    # The nodes that live pass in any order, once in a second each; the others are silent.
    for _ in range(15):
        table.now += timedelta(seconds=1)
        chance.shuffle(live)
        for node in live:
            table.renew(node)
            act(table, node, read(table))
    counts = dict.fromkeys(live, 0)
    for lease in table.leases:
        assert lease.owner in counts
        counts[SchedulerId(lease.owner)] += 1
    assert max(counts.values()) <= fair_share(SHARDS, len(live))
    settled = table.moves
    for _ in range(5):
        table.now += timedelta(seconds=1)
        for node in live:
            table.renew(node)
            act(table, node, read(table))
    assert table.moves == settled, "it goes to and fro"


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 5), st.integers(1, 5))
def test_a_change_of_nodes_moves_no_more_than_it_must(before: int, after: int) -> None:
    table = Table()
    for nodes in (NODES[:before], NODES[:after]):
        table.seen_at = dict.fromkeys(nodes, table.now)
        for lease in table.leases:
            if lease.owner is not None and lease.owner not in nodes:
                table.give(lease.owner, (lease,))
        table.moves = 0
        for _ in range(3):
            for node in nodes:
                table.renew(node)
                act(table, node, read(table))
    gone = max(0, before - after) * fair_share(SHARDS, before)
    come = 2 * max(0, after - before) * fair_share(SHARDS, after)
    surplus = 2 * before * max(0, fair_share(SHARDS, before) - fair_share(SHARDS, after))
    assert table.moves <= max(gone, come, surplus)
