"""Schedulers that share the shards: who comes, goes, dies, freezes or loses the database."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from foliot.core.ids import SchedulerId
from foliot.runtime.metrics import SHARDS_OWNED, SHARDS_WITHOUT_OWNER
from foliot.store import shards
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseUnreachable, TransactionConflict
from foliot.store.shards import Renewal, read_leases, renew, take
from foliot.testing.database import sql
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import NOW, fresh_id
from foliot.testing.schedulers import ManualScheduler

ALL = frozenset(range(64))


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


async def passes(first: int, last: int, *nodes: ManualScheduler) -> None:
    """One in every second for each."""
    for second in range(first, last + 1):
        for node in nodes:
            await node.share(at(second))


async def owners(database: Database, now: datetime) -> list[SchedulerId | None]:
    return [lease.owner for lease in (await read_leases(database, now)).leases]


async def test_the_first_node_holds_everything(database: Database) -> None:
    node = ManualScheduler(database)
    report = await node.share(at(0))
    assert report.owned == node.shards.owned == ALL
    assert (report.taken, report.given, report.without_owner) == (64, 0, frozenset())
    assert SHARDS_OWNED._value.get() == 64
    assert SHARDS_WITHOUT_OWNER._value.get() == 0


async def test_who_comes_gets_a_fair_share_within_two_seconds(database: Database) -> None:
    nodes = [ManualScheduler(database) for _ in range(3)]
    await passes(0, 3, nodes[0])
    await passes(4, 5, *nodes)
    counts = sorted(len(node.shards.owned) for node in nodes)
    assert counts == [20, 22, 22]
    assert frozenset.union(*(node.shards.owned for node in nodes)) == ALL
    before = [node.shards.owned for node in nodes]
    await passes(6, 20, *nodes)
    assert [node.shards.owned for node in nodes] == before


async def test_leases_are_renewed_every_three_seconds(database: Database) -> None:
    node = ManualScheduler(database)
    ends = []
    for second in range(8):
        await node.share(at(second))
        ends.append((await read_leases(database, at(second))).leases[0].expires_at)
    assert ends == [at(10 + 3 * (second // 3)) for second in range(8)]


async def test_what_a_stopped_node_held_is_taken_in_the_next_pass(database: Database) -> None:
    one, two = ManualScheduler(database), ManualScheduler(database)
    await passes(0, 2, one, two)
    await one.shards.leave()
    assert one.shards.owned == frozenset()
    assert (await two.share(at(3))).owned == ALL


async def test_what_a_dead_node_held_is_taken_over_when_its_lease_runs_out(
    database: Database,
) -> None:
    one, two = ManualScheduler(database), ManualScheduler(database)
    await passes(0, 12, one, two)
    await passes(13, 21, two)
    assert len(two.shards.owned) == 32
    assert two.shards.without_owner == frozenset()
    await passes(22, 24, two)
    assert two.shards.owned == ALL


async def test_what_a_dead_node_held_goes_to_one_that_has_just_come(database: Database) -> None:
    """It may take nothing over yet; whoever may frees it for all."""
    one, two = ManualScheduler(database), ManualScheduler(database)
    await passes(0, 12, one, two)
    # The other one is silent from here on; its lease ends at 22.
    await passes(13, 17, one)
    fresh = ManualScheduler(database)
    await passes(18, 21, one, fresh)
    assert len(one.shards.owned) + len(fresh.shards.owned) < 64
    await passes(22, 24, one, fresh)
    assert one.shards.owned | fresh.shards.owned == ALL
    assert len(fresh.shards.owned) == 32


async def test_a_node_that_has_just_started_takes_nothing_over(database: Database) -> None:
    """It cannot know whether there was an outage: the owner may be about to renew."""
    one, two = ManualScheduler(database), ManualScheduler(database)
    await one.share(at(0))
    await passes(60, 69, two)
    assert two.shards.owned == frozenset()
    assert two.shards.without_owner == ALL
    await one.share(at(69))
    await passes(70, 80, one, two)
    assert len(one.shards.owned) == len(two.shards.owned) == 32


async def test_after_an_outage_everybody_keeps_what_they_had(database: Database) -> None:
    one, two = ManualScheduler(database), ManualScheduler(database)
    await passes(0, 12, one, two)
    before = one.shards.owned, two.shards.owned
    # For a minute nobody is heard; then one of them is first by seven seconds.
    await passes(72, 78, two)
    assert two.shards.owned == before[1]
    await passes(79, 99, one, two)
    assert (one.shards.owned, two.shards.owned) == before


async def test_a_node_that_wakes_up_finds_its_shards_gone(database: Database) -> None:
    one, two = ManualScheduler(database), ManualScheduler(database)
    await passes(0, 12, one, two)
    await passes(13, 30, two)
    assert len(one.shards.owned) == 32
    report = await one.share(at(31))
    assert report.owned == frozenset()
    assert await owners(database, at(31)) == [two.node.id] * 64
    await passes(32, 34, two, one)
    assert len(one.shards.owned) == len(two.shards.owned) == 32


async def test_an_answer_that_was_lost_changes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def take_and_lose(*arguments: Any) -> dict[int, int]:  # noqa: ANN401 - handed through
        await take(*arguments)
        raise CommitUnknown("postgresql://", "the wire was cut")

    node = ManualScheduler(database)
    with monkeypatch.context() as patch:
        patch.setattr(shards, "take", take_and_lose)
        with pytest.raises(CommitUnknown):
            await node.share(at(0))
    assert node.shards.owned == frozenset()
    report = await node.share(at(1))
    assert (report.owned, report.taken) == (ALL, 0)
    assert {lease.epoch for lease in (await read_leases(database, at(1))).leases} == {1}


async def test_what_is_lost_between_reading_and_renewing_is_not_ours(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lose_and_renew(*arguments: Any) -> Renewal:  # noqa: ANN401 - handed through
        await database.execute(
            sql("update foliot.shard_leases set owner = $1, epoch = epoch + 1 where shard < 5"),
            fresh_id(),
        )
        return await renew(*arguments)

    node = ManualScheduler(database)
    await passes(0, 2, node)
    monkeypatch.setattr(shards, "renew", lose_and_renew)
    assert (await node.share(at(3))).owned == set(range(5, 64))


async def test_a_wire_that_was_cut_begins_the_watch_anew(
    database_url: str, database: Database
) -> None:
    one = ManualScheduler(database)
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        two = ManualScheduler(far)
        await passes(0, 12, one, two)
        proxy.cut_at(two.node.id.bytes, deliver=False)
        with pytest.raises((CommitUnknown, DatabaseUnreachable)):
            await passes(13, 16, two)
        # The other one is silent from here on; its lease ends at 22.
        await passes(17, 26, two)
        assert len(two.shards.owned) == 32
        await passes(27, 27, two)
        assert two.shards.owned == ALL


async def test_while_no_lease_can_be_renewed_none_that_runs_out_is_taken_over(
    database: Database,
) -> None:
    one, two = ManualScheduler(database), ManualScheduler(database)
    await passes(0, 12, one, two)
    async with database.transaction() as session:
        await session.execute(sql("lock table foliot.shard_leases in share mode"))
        with pytest.raises(TransactionConflict, match="renew"):
            await passes(15, 15, two)
    # The other one is silent from here on; its lease ends at 22.
    await passes(16, 25, two)
    assert len(two.shards.owned) == 32
    await passes(26, 26, two)
    assert two.shards.owned == ALL


async def test_a_row_that_somebody_removed_is_there_again(database: Database) -> None:
    node = ManualScheduler(database)
    await node.share(at(0))
    await database.execute(sql("delete from foliot.schedulers"))
    await passes(1, 3, node)
    assert (await read_leases(database, at(3))).live == {node.node.id}
    assert node.shards.owned == ALL
