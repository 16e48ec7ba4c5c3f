"""Leases on a real server: one owner at a time, an epoch for each, whoever is at it at once."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from uuid import uuid4

from foliot.core.ids import SchedulerId
from foliot.core.lease import Lease
from foliot.store.database import Database
from foliot.store.shards import (
    LEASE_SECONDS,
    Scheduler,
    forget_silent,
    give,
    leave,
    read_leases,
    renew,
    take,
)
from foliot.testing.database import sql
from foliot.testing.rows import NOW
from foliot.testing.running import until_blocked

LEASE = timedelta(seconds=LEASE_SECONDS)
SECOND = timedelta(seconds=1)
LOG = sql("""
create table foliot.changes as select shard, owner, epoch from foliot.shard_leases with no data
""")
RECORD = sql("""
create function foliot.record() returns trigger language plpgsql as $$
begin
  insert into foliot.changes select new.shard, new.owner, new.epoch;
  return new;
end $$
""")
WATCH = sql("""
create trigger watch after update on foliot.shard_leases for each row execute function
foliot.record()
""")


def node() -> Scheduler:
    return Scheduler(SchedulerId(uuid4()), "host", "1.0")


async def leases(database: Database, now: datetime = NOW) -> list[Lease]:
    return list((await read_leases(database, now)).leases)


async def owned(database: Database, one: Scheduler, now: datetime = NOW) -> dict[int, int]:
    return {
        lease.shard: lease.epoch for lease in await leases(database, now) if lease.owner == one.id
    }


async def take_free(
    database: Database, one: Scheduler, shards: Iterable[int], now: datetime = NOW
) -> dict[int, int]:
    seen = await leases(database, now)
    return await take(database, one.id, [seen[shard] for shard in shards], now)


async def test_at_first_nobody_holds_anything(database: Database) -> None:
    seen = await read_leases(database, NOW)
    assert [lease.shard for lease in seen.leases] == list(range(64))
    assert {(lease.owner, lease.epoch, lease.expires_at) for lease in seen.leases} == {
        (None, 0, None)
    }
    assert (seen.live, seen.now) == (frozenset(), NOW)


async def test_a_node_lives_for_a_lease_after_it_was_last_heard(database: Database) -> None:
    one = node()
    assert (await renew(database, one, {}, NOW)).now == NOW
    assert (await read_leases(database, NOW + LEASE - SECOND)).live == {one.id}
    assert (await read_leases(database, NOW + LEASE)).live == frozenset()
    await renew(database, one, {}, NOW + LEASE)
    assert (await read_leases(database, NOW + LEASE)).live == {one.id}
    row = await database.fetch_row(sql("select * from foliot.schedulers"))
    assert row is not None
    assert (row["host"], row["version"]) == ("host", "1.0")
    assert (row["started_at"], row["last_seen_at"]) == (NOW, NOW + LEASE)


async def test_what_is_taken_is_held_for_a_lease_under_a_new_epoch(database: Database) -> None:
    one = node()
    assert await take_free(database, one, [3, 5]) == {3: 1, 5: 1}
    (lease,) = [lease for lease in await leases(database) if lease.shard == 3]
    assert lease == Lease(3, one.id, 1, NOW + LEASE)
    assert await owned(database, one) == {3: 1, 5: 1}


async def test_what_another_holds_cannot_be_taken_until_its_lease_runs_out(
    database: Database,
) -> None:
    one, two = node(), node()
    await take_free(database, one, [7])
    assert await take_free(database, two, [7], NOW + LEASE - SECOND) == {}
    assert await take_free(database, two, [7], NOW + LEASE) == {7: 2}
    assert await owned(database, one) == {}


async def test_who_acts_on_an_old_reading_takes_nothing(database: Database) -> None:
    one, two = node(), node()
    old = (await leases(database))[:2]
    await take_free(database, two, [0])
    await give(database, two.id, (await leases(database))[:1])
    await take_free(database, two, [0])
    assert await take(database, one.id, old, NOW + 2 * LEASE) == {1: 1}


async def test_renewing_keeps_what_is_still_ours_and_tells_what_is_not(database: Database) -> None:
    one, two = node(), node()
    held = await take_free(database, one, [1, 2])
    await take_free(database, two, [2], NOW + LEASE)
    renewal = await renew(database, one, held, NOW + LEASE + SECOND)
    assert renewal.shards == {1}
    seen = await leases(database)
    assert seen[1] == Lease(1, one.id, 1, NOW + 2 * LEASE + SECOND)
    assert seen[2] == Lease(2, two.id, 2, NOW + 2 * LEASE)


async def test_a_lease_that_went_to_another_and_came_back_is_not_the_one_we_had(
    database: Database,
) -> None:
    one, two = node(), node()
    held = await take_free(database, one, [1])
    await take_free(database, two, [1], NOW + LEASE)
    again = await take_free(database, one, [1], NOW + 2 * LEASE)
    assert again == {1: 3}
    assert (await renew(database, one, held, NOW + 2 * LEASE)).shards == frozenset()
    assert (await renew(database, one, again, NOW + 2 * LEASE)).shards == {1}


async def test_an_older_renewal_does_not_shorten_a_lease(database: Database) -> None:
    one = node()
    held = await take_free(database, one, [1])
    await renew(database, one, held, NOW + 5 * SECOND)
    await renew(database, one, held, NOW + 2 * SECOND)
    assert (await leases(database))[1].expires_at == NOW + 5 * SECOND + LEASE


async def test_what_is_given_back_is_free_at_once(database: Database) -> None:
    one, two = node(), node()
    await take_free(database, one, [1, 2])
    assert await give(database, one.id, (await leases(database))[1:2]) == 1
    assert await owned(database, one) == {2: 1}
    assert await take_free(database, two, [1, 2]) == {1: 2}


async def test_what_was_given_back_is_not_renewed(database: Database) -> None:
    one = node()
    held = await take_free(database, one, [1])
    await give(database, one.id, (await leases(database))[1:2])
    assert (await renew(database, one, held, NOW)).shards == frozenset()
    assert (await leases(database))[1] == Lease(1, None, 1, None)


async def test_a_late_giving_back_does_not_touch_what_was_taken_anew(database: Database) -> None:
    one, two = node(), node()
    await take_free(database, one, [1])
    seen = await leases(database)
    await take_free(database, two, [1], NOW + LEASE)
    await take_free(database, one, [1], NOW + 2 * LEASE)
    assert await give(database, one.id, [seen[1]]) == 0
    assert await owned(database, one) == {1: 3}


async def test_nobody_gives_back_what_another_has_taken(database: Database) -> None:
    one, two = node(), node()
    await take_free(database, one, [1])
    seen = await leases(database)
    await take_free(database, two, [1], NOW + LEASE)
    assert await give(database, one.id, [seen[1]]) == 0
    assert await owned(database, two) == {1: 2}


async def test_who_leaves_holds_nothing_and_is_not_counted(database: Database) -> None:
    one, two = node(), node()
    for each in (one, two):
        await renew(database, each, {}, NOW)
    await take_free(database, one, range(40))
    await take_free(database, two, range(40, 64))
    assert await leave(database, one.id) == 40
    seen = await read_leases(database, NOW)
    assert seen.live == {two.id}
    assert [lease.owner for lease in seen.leases] == [None] * 40 + [two.id] * 24


async def test_nodes_that_have_been_silent_for_a_day_are_forgotten(database: Database) -> None:
    old, new = node(), node()
    await renew(database, old, {}, NOW - timedelta(hours=25))
    await renew(database, new, {}, NOW - timedelta(hours=23))
    assert await forget_silent(database, NOW) == 1
    (row,) = await database.fetch(sql("select id from foliot.schedulers"))
    assert row["id"] == new.id


async def test_eight_nodes_at_once_never_share_a_shard_under_one_epoch(
    database_url: str, database: Database
) -> None:
    for statement in (LOG, RECORD, WATCH):
        await database.execute(statement)
    nodes = [node() for _ in range(8)]
    async with AsyncExitStack() as stack:
        pools = [await stack.enter_async_context(Database(database_url)) for _ in nodes]
        for round_ in range(12):
            now = NOW + round_ * (LEASE / 2)
            await asyncio.gather(
                *(
                    _grab(pool, one, now, number + round_)
                    for number, (pool, one) in enumerate(zip(pools, nodes, strict=True))
                )
            )
    rows = await database.fetch(
        sql("select distinct shard, owner, epoch from foliot.changes where owner is not null")
    )
    held = [(row["shard"], row["epoch"]) for row in rows]
    assert len(held) == len(set(held)) > 64
    assert len({row["owner"] for row in rows}) > 1
    final = await leases(database)
    for lease in final:
        epochs = [epoch for shard, epoch in held if shard == lease.shard]
        assert sorted(epochs) == list(range(1, lease.epoch + 1)), "an epoch for each owner"


async def _grab(pool: Database, one: Scheduler, now: datetime, part: int) -> None:
    """Everything that can be had, and a part of it back."""
    seen = await read_leases(pool, now)
    got = await take(pool, one.id, seen.leases, now)
    assert (await renew(pool, one, got, now)).shards == set(got)
    mine = [lease for lease in (await read_leases(pool, now)).leases if lease.owner == one.id]
    await give(pool, one.id, [lease for lease in mine if lease.shard % 8 == part % 8])


async def test_who_takes_waits_for_nobody(database_url: str, database: Database) -> None:
    one = node()
    seen = await leases(database)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(sql("select from foliot.shard_leases where shard = 4 for update"))
        assert await take(database, one.id, seen[:8], NOW) == {
            shard: 1 for shard in range(8) if shard != 4
        }


async def test_a_renewal_counts_from_when_it_got_through(
    database_url: str, database: Database
) -> None:
    """By the server's clock, after the wait for a lock."""
    one = node()
    seen = await read_leases(database)
    held = await take(database, one.id, seen.leases[:1], seen.now)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(sql("select from foliot.shard_leases where shard = 0 for update"))
        renewing = asyncio.create_task(renew(database, one, held))
        await until_blocked(session)
        free_at = await session.fetch_value(sql("select clock_timestamp()"))
    renewal = await renewing
    assert renewal.now > free_at
    assert renewal.shards == {0}
    (lease,) = (await read_leases(database)).leases[:1]
    assert lease.expires_at == renewal.now + LEASE
