"""Which shards are ours: leases are renewed, given back above our share and taken up to it.

A pass a second, so that what somebody gives back has an owner within a second; a renewal every
three, which survives two lost ones. What we hold is what the database says we hold, so an answer
that was lost changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from foliot.core.grace import Reading, Watch, may_judge, watch_on
from foliot.core.ids import SchedulerId
from foliot.core.lease import Lease, share
from foliot.runtime.clock import Clock
from foliot.runtime.metrics import SHARDS_OWNED, SHARDS_WITHOUT_OWNER
from foliot.store import shards as store
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseError, DatabaseUnreachable
from foliot.store.shards import LEASE_SECONDS, Leases, Scheduler

PAUSE_SECONDS: Final = 1.0
RENEW_AFTER: Final = timedelta(seconds=3)


@dataclass(frozen=True, slots=True)
class SharesReport:
    owned: frozenset[int]
    taken: int
    given: int
    without_owner: frozenset[int]


class Shards:
    name: Final = "shards"

    def __init__(self, database: Database, clock: Clock, node: Scheduler) -> None:
        self._database = database
        self._clock = clock
        self._node = node
        self._held: dict[int, int] = {}
        self._renewed_at: datetime | None = None
        self._watch: Watch | None = None
        self.pause_seconds = PAUSE_SECONDS
        self.without_owner: frozenset[int] = frozenset()
        self.owners: dict[int, SchedulerId | None] = {}

    @property
    def owned(self) -> frozenset[int]:
        return frozenset(self._held)

    async def run_once(self, now: datetime | None = None) -> SharesReport:
        try:
            return await self._pass(now)
        except (DatabaseUnreachable, CommitUnknown):
            self._watch = None
            raise

    async def _pass(self, now: datetime | None) -> SharesReport:
        seen = await store.read_leases(self._database, now)
        self._watch = watch_on(self._watch, Reading(self._clock.monotonic(), seen.now))
        self._held = _held_by(self._node, seen.leases)
        await self._renew(seen.now, now)
        sharing = share(
            self._node.id,
            seen.leases,
            seen.live,
            seen.now,
            takeovers=may_judge(self._watch, LEASE_SECONDS),
        )
        await self._give(sharing.give)
        taken = {}
        if wanted := (*sharing.take, *sharing.free):
            taken = await store.take(self._database, self._node.id, wanted, seen.now)
            self._held |= taken
        # What we have taken for others; if it is not given now, we are above our share.
        shards = [lease.shard for lease in sharing.free if lease.shard in taken]
        await self._give([Lease(shard, self._node.id, taken[shard], None) for shard in shards])
        return self._report(seen, len(taken), len(sharing.give))

    async def _give(self, leases: Sequence[Lease]) -> None:
        if leases:
            await store.give(self._database, self._node.id, leases)
            for lease in leases:
                self._held.pop(lease.shard, None)

    async def _renew(self, told: datetime, now: datetime | None) -> None:
        """Also after the database's clock was set back: what it says now is what counts. While we
        cannot renew, others cannot either, and a lease that runs out says nothing."""
        if self._renewed_at and abs(told - self._renewed_at) < RENEW_AFTER:
            return
        try:
            renewal = await store.renew(self._database, self._node, self._held, now)
        except DatabaseError:
            self._watch = None
            raise
        self._renewed_at = renewal.now
        self._held = {shard: self._held[shard] for shard in renewal.shards}

    async def leave(self) -> None:
        """Give everything back at once: we stop."""
        self._held = {}
        SHARDS_OWNED.set(0)
        await store.leave(self._database, self._node.id)

    def _report(self, seen: Leases, taken: int, given: int) -> SharesReport:
        self.owners = {lease.shard: lease.owner for lease in seen.leases}
        self.without_owner = frozenset(
            lease.shard
            for lease in seen.leases
            if not lease.is_held(seen.now) and lease.shard not in self._held
        )
        SHARDS_OWNED.set(len(self._held))
        SHARDS_WITHOUT_OWNER.set(len(self.without_owner))
        return SharesReport(self.owned, taken, given, self.without_owner)


def _held_by(node: Scheduler, leases: tuple[Lease, ...]) -> dict[int, int]:
    return {lease.shard: lease.epoch for lease in leases if lease.owner == node.id}
