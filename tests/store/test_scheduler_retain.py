"""Passes that make days ahead and forget what nobody needs, a bounded part at a time."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from foliot.scheduler.retain import BUSY_PAUSE_SECONDS, PAUSE_SECONDS, Retain, Retained
from foliot.scheduler.trades import Trade, common_trades
from foliot.store.database import Database
from foliot.store.errors import TransactionConflict
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.rows import NOW, make_executions, make_job, make_worker

FAR = datetime(2091, 3, 1, tzinfo=UTC)
OLD = FAR - timedelta(days=2)
ADD_REQUESTS = sql(
    "insert into foliot.idempotency_keys (tenant_id, route, key, request_hash, created_at)"
    " select gen_random_uuid(), 'r', 'k', '', $1 from generate_series(1, $2)"
)
ADD_CLOCKS = sql(
    "insert into foliot.queue_clocks (queue, lane_id, virtual_time, at)"
    " select queue, id, n, $1::timestamptz + make_interval(secs => n)"
    " from foliot.lanes, generate_series(1, $2::integer) n"
)
ADD_LIMITS = sql(
    "insert into foliot.limits select 'key:' || n, 1 from generate_series(1, $1::integer) n"
)
COUNT_LIMITS = sql("select count(*) from foliot.limits")
LOCK = sql("lock table foliot.attempts in share update exclusive mode")


@pytest_asyncio.fixture
async def crowded(database: Database) -> AsyncIterator[Database]:
    """Something of everything that is not needed any more."""
    deleted = await make_job(database, status="DELETED", next_instant=None)
    await make_executions(database, deleted, 3)
    await make_worker(database, status="DEAD", last_heartbeat_at=OLD)
    await make_worker(database, status="DEAD", last_heartbeat_at=FAR)
    await database.execute(ADD_REQUESTS, OLD, 5)
    await database.execute(ADD_REQUESTS, FAR, 2)
    await database.execute(ADD_CLOCKS, OLD, 10)
    await database.execute(ADD_LIMITS, 4)
    yield database


async def test_a_pass_does_something_of_everything(crowded: Database) -> None:
    retain = Retain(crowded)
    assert await retain.run_once(FAR) == Retained(
        days=9, clocks=9, requests=5, workers=1, limits=4, cancelled=3
    )
    assert await retain.run_once(FAR) == Retained()
    assert retain.pause_seconds == PAUSE_SECONDS


async def test_a_pass_is_bounded_and_the_next_goes_on(crowded: Database) -> None:
    retain = Retain(crowded, rounds=1, batch=2)
    report = await retain.run_once(FAR)
    assert (report.requests, report.limits, report.more) == (2, 2, True)
    assert retain.pause_seconds == BUSY_PAUSE_SECONDS
    passes = [await retain.run_once(FAR) for _ in range(3)]
    assert [one.requests for one in passes] == [2, 1, 0]
    assert sum(one.limits for one in passes) == 2
    assert not passes[-1].more
    assert await crowded.fetch_value(COUNT_LIMITS) == 0


async def test_what_fails_keeps_nothing_else_from_being_done(crowded: Database) -> None:
    """A day that cannot be made now; everything after it is done all the same."""
    async with crowded.transaction() as other:
        await other.execute(sql("set local idle_in_transaction_session_timeout = 0"))
        await other.execute(LOCK)
        with pytest.raises(TransactionConflict):
            await Retain(crowded).run_once(FAR)
    assert await Retain(crowded).run_once(FAR) == Retained(days=9)


async def test_several_nodes_at_once_do_it_once(crowded: Database) -> None:
    passes = await asyncio.gather(*(Retain(crowded).run_once(FAR) for _ in range(4)))
    rest = await Retain(crowded).run_once(FAR)
    everything = [*passes, rest]
    assert sum(one.requests for one in everything) == 5
    assert sum(one.workers for one in everything) == 1
    assert sum(one.limits for one in everything) == 4
    assert sum(one.cancelled for one in everything) == 3


async def test_every_common_trade_makes_a_pass_and_says_how_long_to_wait(
    database: Database,
) -> None:
    trades: tuple[Trade, ...] = common_trades(database, ManualClock())
    for trade in trades:
        await trade.run_once(NOW)
        assert 0 <= trade.pause_seconds <= PAUSE_SECONDS
    assert len({trade.name for trade in trades}) == len(trades)
