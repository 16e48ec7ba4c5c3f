"""Passes that fire the jobs that follow others: all of them, once, and ready to be claimed."""

import asyncio
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest

from foliot.core.model import After, AfterMode, OverlapPolicy
from foliot.core.states import ExecutionEvent
from foliot.runtime.metrics import JOBS_TRIGGERED
from foliot.scheduler.after import FireAfter, Followed
from foliot.scheduler.wide_look import WIDE_LOOK_SECONDS
from foliot.store import completions
from foliot.store.claiming import ClaimRequest, Look, claim
from foliot.store.completions import FollowReport
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseUnreachable, TransactionConflict
from foliot.store.finishing import Outcome, finish
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.following import end_one, live_of, make_child, make_parent
from foliot.testing.points import Point, When
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import NOW, make_worker

SECOND = timedelta(seconds=1)
LANES = sql("select array_agg(id) from foliot.lanes")
FIRED = sql("select fired_count from foliot.jobs where id = $1")
ENDED = sql("select count(*) from foliot.attempts where job_id = $1 and final")


async def test_what_fires_can_be_claimed_after_the_same_pass(database: Database) -> None:
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    before = JOBS_TRIGGERED._value.get()
    await end_one(database, parent)
    assert await FireAfter(database, ManualClock()).run_once(NOW) == Followed(told=1, fired=1)
    assert JOBS_TRIGGERED._value.get() - before == 1
    (live,) = await live_of(database, child.job_id)
    assert live["status"] == "QUEUED"
    assert live["rank"] is not None


async def test_a_pass_goes_through_all_pages(database: Database) -> None:
    parent = await make_parent(database)
    children = [await make_child(database, After((parent.job_id,))) for _ in range(7)]
    await end_one(database, parent)
    trade = FireAfter(database, ManualClock(), rows=2)
    assert (await trade.run_once(NOW)).fired == len(children)
    assert await trade.run_once(NOW) == Followed()


async def test_an_end_that_came_late_is_found_by_the_wide_look(database: Database) -> None:
    parent, clock = await make_parent(database), ManualClock()
    await make_child(database, After((parent.job_id,)))
    trade = FireAfter(database, clock)
    await trade.run_once(NOW)
    await end_one(database, parent, at=NOW - 11 * SECOND)
    clock.seconds += WIDE_LOOK_SECONDS - 1
    assert await trade.run_once(NOW) == Followed()
    clock.seconds += 1
    assert (await trade.run_once(NOW)).fired == 1


async def test_skips_are_told_apart(database: Database) -> None:
    parent = await make_parent(database)
    await make_child(database, After((parent.job_id,)), overlap_policy=OverlapPolicy.SKIP)
    trade = FireAfter(database, ManualClock())
    for at, followed in ((NOW, Followed(1, fired=1)), (NOW + SECOND, Followed(1, skipped=1))):
        await end_one(database, parent, at=at)
        assert await trade.run_once(at) == followed


@pytest.mark.parametrize(("when", "fired"), [("before", 1), ("after", 0)])
async def test_a_commit_that_is_not_confirmed_loses_nothing_and_doubles_nothing(
    database: Database, database_url: str, when: When, fired: int
) -> None:
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    await end_one(database, parent)
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        proxy.at_point(Point(when, "commit"), cut=True)
        trade = FireAfter(far, ManualClock())
        with pytest.raises((CommitUnknown, DatabaseUnreachable)):
            await trade.run_once(NOW)
        assert (await trade.run_once(NOW)).fired == fired
    assert len(await live_of(database, child.job_id)) == 1


async def test_chains_under_load_fire_every_link_once(
    database: Database, database_url: str
) -> None:
    """Workers finish while two schedulers fire: ten rounds of three chains, each to its end."""
    parents = [await make_parent(database) for _ in range(3)]
    chains = []
    for parent in parents:
        second = await make_child(database, After((parent.job_id,), AfterMode.ANY))
        third = await make_child(database, After((second.job_id,), AfterMode.ANY))
        chains.append((second, third))
    worker = await make_worker(database)
    lanes = await database.fetch_value(LANES)
    async with Database(database_url, ConnectionOptions(max_connections=8)) as nodes:
        trades = [FireAfter(nodes, ManualClock(), rows=2) for _ in range(2)]

        async def work(at: datetime) -> None:
            request = ClaimRequest(worker, "default", lanes, 10, Look.EVERYWHERE)
            for one in await claim(nodes, request, at):
                outcome = Outcome(one.execution_id, one.fence, ExecutionEvent.SUCCEED)
                await finish(nodes, worker, [outcome], at)

        for number in range(10):
            at = NOW + number * SECOND
            await asyncio.gather(
                *(end_one(nodes, parent, at=at) for parent in parents),
                *(trade.run_once(at) for trade in trades),
                work(at),
            )
        at = NOW + 10 * SECOND
        for _ in range(6):
            await asyncio.gather(*(trade.run_once(at) for trade in trades))
            await work(at)
    for second, third in chains:
        fired = [await database.fetch_value(FIRED, job.job_id) for job in (second, third)]
        ended = [await database.fetch_value(ENDED, job.job_id) for job in (second, third)]
        assert fired == ended
        assert 1 <= fired[1] <= fired[0] <= 10


REFUSE = """
create function foliot.refuse() returns trigger language plpgsql as $$
begin
  raise exception 'not this one' using errcode = '23514';
end $$;
create trigger refuse before insert on foliot.executions
   for each row when (new.job_name = 'poison') execute function foliot.refuse();
"""


async def test_a_child_that_the_database_refuses_keeps_no_other_waiting(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    parent, clock = await make_parent(database), ManualClock()
    after = After((parent.job_id,))
    await make_child(database, after, name="poison")
    children = [await make_child(database, after) for _ in range(9)]
    async with database.connection() as session:
        await session.run_script("refuse", REFUSE, timeout_seconds=5)
    await end_one(database, parent)
    trade = FireAfter(database, clock, rows=8)
    assert await trade.run_once(NOW) == Followed(told=9, fired=9, refused=1)
    for child in children:
        assert len(await live_of(database, child.job_id)) == 1
    # It is left alone for ten seconds, and then tried again: what it waits for is not lost.
    caplog.clear()
    assert await trade.run_once(NOW + 9 * SECOND) == Followed()
    assert not caplog.records
    async with database.connection() as session:
        script = "drop trigger refuse on foliot.executions"
        await session.run_script("allow", script, timeout_seconds=5)
    clock.seconds += WIDE_LOOK_SECONDS
    assert (await trade.run_once(NOW + 10 * SECOND)).fired == 1


async def test_a_child_that_took_too_long_once_is_tried_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that stood still ends what was under way, whatever it was."""
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    await end_one(database, parent)
    right, tries = completions._fire, count(1)

    async def fire(*arguments: Any) -> FollowReport:  # noqa: ANN401 - handed through
        if next(tries) == 1:
            raise TransactionConflict("it took too long", "57014")
        return await right(*arguments)

    monkeypatch.setattr(completions, "_fire", fire)
    assert await FireAfter(database, ManualClock()).run_once(NOW) == Followed(told=1, fired=1)
    assert len(await live_of(database, child.job_id)) == 1
