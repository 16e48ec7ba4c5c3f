"""Queues: how full they are, paused, and limited where turns are by rank."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from foliot.core.errors import QueueNotFound
from foliot.core.ids import WorkerId
from foliot.core.states import ExecutionEvent
from foliot.store.claiming import Claim, ClaimRequest, Look, claim
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.finishing import Outcome, finish
from foliot.store.queues import (
    limit_queue,
    list_queues,
    pause_queue,
    read_queue,
    resume_queue,
)
from foliot.store.releasing import release_due
from foliot.testing.database import sql
from foliot.testing.flaky_nodes import FlakyNode, flaky_options, run_killing, runs
from foliot.testing.rows import (
    NOW,
    JobRow,
    make_executions,
    make_job,
    make_lane,
    make_tenant,
    make_worker,
)
from foliot.testing.running import make_running, until_blocked
from foliot.testing.spans import most_at_once

SECOND = timedelta(seconds=1)
RUNNING = sql("select count(*) from foliot.executions where status = 'RUNNING'")
HOLD_CLAIMS = sql("select pg_advisory_xact_lock(21, hashtext('default'))")


async def claimed(database: Database, worker: WorkerId, job: JobRow, bite: int) -> list[Claim]:
    wanted = ClaimRequest(worker, job.queue, [job.lane_id], bite, Look.EVERYWHERE)
    return list(await claim(database, wanted, NOW))


async def end(database: Database, worker: WorkerId, *claims: Claim) -> None:
    await finish(
        database,
        worker,
        [Outcome(each.execution_id, each.fence, ExecutionEvent.SUCCEED) for each in claims],
        NOW,
    )


async def test_a_queue_is_there_once_a_job_names_it(database: Database) -> None:
    assert await list_queues(database, limit=10) == []
    for call in (read_queue, pause_queue, resume_queue):
        with pytest.raises(QueueNotFound, match="there is no queue 'mail'"):
            await call(database, "mail")
    with pytest.raises(QueueNotFound):
        await limit_queue(database, "mail", 3)
    for name in ("mail", "bulk", "zoo"):
        await make_lane(database, name)
    await make_lane(database, "mail", region="eu")
    names = [queue.name for queue in await list_queues(database, limit=10)]
    assert names == ["bulk", "mail", "zoo"]
    assert [each.name for each in await list_queues(database, "bulk", limit=1)] == ["mail"]


async def test_a_queue_tells_how_full_it_is(database: Database) -> None:
    job = await make_job(database)
    other = await make_tenant(database)
    await make_executions(database, job, 3, queued_at=NOW - 5 * SECOND)
    await make_executions(database, job, 2, queued_at=NOW - 9 * SECOND, tenant_id=other, rank=99.0)
    await make_executions(database, job, 4, status="PENDING")
    await make_running(database, 2, job=job)
    found = await read_queue(database, "default", NOW)
    assert (found.depth, found.running, found.oldest_wait_seconds) == (5, 2, 9.0)
    await make_lane(database, "idle")
    idle = await read_queue(database, "idle", NOW)
    assert (idle.depth, idle.running, idle.oldest_wait_seconds) == (0, 0, None)


async def test_what_was_paused_first_stays_until_it_is_resumed(database: Database) -> None:
    job, worker = await make_job(database), await make_worker(database)
    await make_executions(database, job, 2)
    paused = await pause_queue(database, "default", "the disk is full", NOW)
    again = await pause_queue(database, "default", now=NOW + SECOND)
    assert (paused.paused_at, again.paused_at) == (NOW, NOW)
    assert again.status_note == "the disk is full"
    assert await claimed(database, worker, job, 5) == []
    resumed = await resume_queue(database, "default")
    assert (resumed.paused_at, resumed.status_note) == (None, None)
    assert len(await claimed(database, worker, job, 5)) == 2


async def test_no_more_run_than_the_limit_of_the_queue(database: Database) -> None:
    job, worker = await make_job(database), await make_worker(database)
    await make_executions(database, job, 9)
    assert (await limit_queue(database, "default", 3)).concurrency_limit == 3
    first = await claimed(database, worker, job, 2)
    second = await claimed(database, worker, job, 5)
    assert (len(first), len(second)) == (2, 1)
    assert await claimed(database, worker, job, 5) == []
    await end(database, worker, *first)
    assert len(await claimed(database, worker, job, 5)) == 2
    await limit_queue(database, "default", 2)
    assert await claimed(database, worker, job, 5) == [], "three run, and nothing stops them"
    await limit_queue(database, "default", None)
    assert len(await claimed(database, worker, job, 5)) == 4


async def test_another_queue_has_a_limit_of_its_own(database: Database) -> None:
    job, other = await make_job(database), await make_job(database, queue="other")
    worker = await make_worker(database, queues=["default", "other"])
    for each in (job, other):
        await make_executions(database, each, 3)
    await limit_queue(database, "default", 1)
    assert len(await claimed(database, worker, job, 5)) == 1
    assert len(await claimed(database, worker, other, 5)) == 3


async def test_what_ran_before_the_limit_was_set_holds_a_slot(database: Database) -> None:
    job, worker = await make_job(database), await make_worker(database)
    await make_executions(database, job, 5)
    before = await claimed(database, worker, job, 2)
    await limit_queue(database, "default", 3)
    assert len(await claimed(database, worker, job, 5)) == 1
    await end(database, worker, *before)
    assert len(await claimed(database, worker, job, 5)) == 2


async def test_a_limit_is_set_between_two_claims(database: Database, database_url: str) -> None:
    """Or else what a claim takes at that moment would not be counted."""
    job = await make_job(database)
    worker, _ = await make_running(database, 1, job=job)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(HOLD_CLAIMS)
        setting = asyncio.create_task(limit_queue(database, "default", 1))
        await until_blocked(session)
        assert not setting.done()
    await setting
    await make_executions(database, job, 1)
    assert await claimed(database, worker, job, 1) == []


async def test_a_pause_comes_between_two_claims(database: Database, database_url: str) -> None:
    """Or else a claim that is under way takes something after the pause was answered."""
    await make_job(database)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(HOLD_CLAIMS)
        pausing = asyncio.create_task(pause_queue(database, "default"))
        await until_blocked(session, pausing)
    assert (await pausing).paused_at is not None


async def test_the_slots_of_a_queue_go_by_turns_and_not_to_whoever_fills_it(
    database: Database,
) -> None:
    worker = await make_worker(database)
    flood, small = await make_tenant(database), await make_tenant(database)
    jobs = {tenant: await make_job(database, tenant_id=tenant) for tenant in (flood, small)}
    await limit_queue(database, "default", 2)
    for number, tenant in ((200, flood), (5, small)):
        request = Request(tenant, "test", "once", NOW)
        await enqueue(database, request, [Wanted(jobs[tenant].job_id)] * number, NOW)
    theirs = sql("select tenant_id from foliot.executions where id = $1")
    turns = Counter[Any]()
    while turns[small] < 5:
        for mine in await claimed(database, worker, jobs[flood], 9):
            turns[await database.fetch_value(theirs, mine.execution_id)] += 1
            await end(database, worker, mine)
    assert turns[flood] <= 6


class Node(FlakyNode):
    """Claims, ends and releases."""

    def __init__(self, flaky: Database, steady: Database, job: JobRow) -> None:
        super().__init__(flaky, steady)
        self.job = job

    async def take_turn(self, worker: WorkerId) -> None:
        wanted = ClaimRequest(worker, "default", [self.job.lane_id], 2, Look.EVERYWHERE)
        for mine in await claim(self.flaky, wanted):
            outcome = Outcome(mine.execution_id, mine.fence, ExecutionEvent.SUCCEED)
            await finish(self.flaky, worker, [outcome])
        await release_due(self.flaky)


@pytest.mark.timeout(60)
async def test_a_queues_limit_of_three_is_never_four_whoever_is_killed(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    await make_executions(database, job, 60)
    await limit_queue(database, "default", 3)

    async def look() -> None:
        for _ in range(20):
            assert await database.fetch_value(RUNNING) <= 3

    async with Database(database_url, flaky_options(8)) as flaky:
        killed = await run_killing([Node(flaky, database, job) for _ in range(8)], 10, look)
    ran = await runs(database)
    assert len(ran) >= 60
    assert killed > 0
    assert most_at_once(ran) <= 3
