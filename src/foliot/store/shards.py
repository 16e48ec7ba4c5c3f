"""Shards as the database knows them: who holds which, until when, and under which epoch.

Every change is a compare-and-set on what the caller has seen, decided by the database's clock.
Owning a shard saves work and protects nothing: a job is fired once whoever tries.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.ids import SchedulerId
from foliot.core.lease import Lease
from foliot.store.database import Database
from foliot.store.statements import statement

_RENEW: Final = statement("shards/renew")
_READ: Final = statement("shards/read")
_TAKE: Final = statement("shards/take")
_GIVE: Final = statement("shards/give")
_FORGET_SILENT: Final = statement("shards/forget_silent")

LEASE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A node: `id` is fresh at every start, host and version are for people."""

    id: SchedulerId
    host: str
    version: str


@dataclass(frozen=True, slots=True)
class Renewal:
    """Which shards are still held, and the database's time."""

    shards: frozenset[int]
    now: datetime


@dataclass(frozen=True, slots=True)
class Leases:
    """All shards, in order, and the schedulers that live."""

    leases: tuple[Lease, ...]
    live: frozenset[SchedulerId]
    now: datetime


async def renew(
    database: Database, node: Scheduler, held: Mapping[int, int], now: datetime | None = None
) -> Renewal:
    """The node lives, and keeps of the shards in `held`, by shard the epoch, what is still its own.

    The first call registers it; a row that somebody removed meanwhile is there again.
    """
    row = await database.fetch_row(
        _RENEW,
        node.id,
        node.host,
        node.version,
        list(held),
        list(held.values()),
        LEASE_SECONDS,
        now,
    )
    if row is None:
        raise AssertionError("the function always answers")
    return Renewal(frozenset(row["shards"]), row["moment"])


async def read_leases(database: Database, now: datetime | None = None) -> Leases:
    row = await database.fetch_row(_READ, LEASE_SECONDS, now)
    if row is None:
        raise AssertionError("the statement always answers")
    leases = zip(row["shards"], row["owners"], row["epochs"], row["expiries"], strict=True)
    return Leases(
        tuple(Lease(*lease) for lease in leases),
        frozenset(SchedulerId(each) for each in row["live"]),
        row["moment"],
    )


async def take(
    database: Database, node: SchedulerId, wanted: Iterable[Lease], now: datetime
) -> dict[int, int]:
    """By shard the epoch of each of `wanted` that is the node's now; somebody may be faster.

    `now` is when they were read: a call that was held up by an outage takes nothing that only ran
    out meanwhile.
    """
    epochs = {lease.shard: lease.epoch for lease in wanted}
    rows = await database.fetch(
        _TAKE, node, list(epochs), list(epochs.values()), LEASE_SECONDS, now
    )
    return {row["shard"]: epochs[row["shard"]] + 1 for row in rows}


async def give(database: Database, node: SchedulerId, unwanted: Iterable[Lease]) -> int:
    """Nobody's from now on; how many of them were the node's."""
    epochs = {lease.shard: lease.epoch for lease in unwanted}
    return int(await database.fetch_value(_GIVE, node, list(epochs), list(epochs.values())))


async def leave(database: Database, node: SchedulerId) -> int:
    """The node stops: everything it holds is free at once, and nobody counts it any more."""
    return int(await database.fetch_value(_GIVE, node, None, None))


async def forget_silent(database: Database, now: datetime | None = None) -> int:
    """Remove schedulers that have been silent for a day; how many went."""
    return await database.execute(_FORGET_SILENT, now)
