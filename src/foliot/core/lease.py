"""How schedulers share the shards: which one to take, which one to give back.

A shard is held under a lease that runs out unless it is renewed, and under an epoch that rises with
every new owner. A node holds at most its fair share, the shards divided by the nodes that live and
rounded up: shares add up to at least all shards, so none stays free, and nobody at or below its
share ever gives, so nothing goes back and forth. Each node has its own order of preference among
the shards: those that take at the same time reach for different ones.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from foliot.core.ids import SchedulerId


@dataclass(frozen=True, slots=True)
class Lease:
    """A shard as its row says. Without an owner it has no end either."""

    shard: int
    owner: SchedulerId | None
    epoch: int
    expires_at: datetime | None

    def is_held(self, now: datetime) -> bool:
        return self.owner is not None and self.expires_at is not None and now < self.expires_at


@dataclass(frozen=True, slots=True)
class Sharing:
    """What a node does next: it takes or gives, and frees what others let run out."""

    take: tuple[Lease, ...] = ()
    give: tuple[Lease, ...] = ()
    free: tuple[Lease, ...] = ()


def share(
    node: SchedulerId,
    leases: Sequence[Lease],
    live: Collection[SchedulerId],
    now: datetime,
    *,
    takeovers: bool,
) -> Sharing:
    """Take up to the fair share, or give back what is above it.

    What nobody holds can be taken at any time; what somebody let run out only with `takeovers`:
    after an outage everyone's leases have run out, and their owners are about to renew them. What
    is above our share then is freed: it may be the share of one that has just come, and may take
    only what nobody holds.
    """
    mine = [lease for lease in leases if lease.owner == node]
    room = fair_share(len(leases), len({*live, node})) - len(mine)
    left = [lease for lease in leases if takeovers and _is_left(lease, node, now)]
    if room < 0:
        liked = sorted(mine, key=lambda lease: _preference(node, lease.shard))
        return Sharing(give=tuple(liked[room:]), free=tuple(left))
    free = [*left, *(lease for lease in leases if lease.owner is None)]
    free.sort(key=lambda lease: _preference(node, lease.shard))
    take = tuple(free[:room])
    return Sharing(take=take, free=tuple(lease for lease in left if lease not in take))


def _is_left(lease: Lease, node: SchedulerId, now: datetime) -> bool:
    """Somebody else's who let it run out."""
    return lease.owner not in (None, node) and not lease.is_held(now)


def fair_share(shards: int, nodes: int) -> int:
    """How many shards a node may hold among so many that live."""
    return -(-shards // max(1, nodes))


def _preference(node: SchedulerId, shard: int) -> bytes:
    return hashlib.blake2b(node.bytes + bytes([shard]), digest_size=8).digest()
