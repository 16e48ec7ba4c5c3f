"""Claims on a real server: nothing twice, in order, and nobody waits for a claimer that froze."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest

from foliot.core.ids import WorkerId
from foliot.core.model import HandlerTarget, RetryPolicy, Trigger
from foliot.store.claiming import (
    Claim,
    ClaimRequest,
    Look,
    claim,
    read_claimed,
    read_instructions,
)
from foliot.store.database import Database
from foliot.testing.database import sql
from foliot.testing.rows import (
    NOW,
    insert_rows,
    make_execution,
    make_executions,
    make_job,
    make_lane,
    make_tenant,
    make_worker,
)

READ = sql(
    "select status, worker_id, claimed_at, fence, attempt_number from foliot.executions"
    " where id = $1"
)
CLOCKS = sql("select lane_id, virtual_time from foliot.queue_clocks order by 1, 2")


def wanted(
    worker: WorkerId, lanes: Sequence[int], bite: int = 100, look: Look = Look.FAR
) -> ClaimRequest:
    return ClaimRequest(worker, "default", lanes, bite, look)


async def test_a_claim_raises_the_fence_and_counts_the_attempt(database: Database) -> None:
    worker = await make_worker(database)
    made = await make_execution(database, fence=7, attempt_number=2, rank=3.5)
    (got,) = await claim(database, wanted(worker, [made.lane_id]), NOW)
    assert got == Claim(made.execution_id, 8, 3.5)
    row = await database.fetch_row(READ, made.execution_id)
    assert row is not None
    assert tuple(row) == ("RUNNING", worker, NOW, 8, 3)


async def test_claims_come_by_rank_across_lanes(database: Database) -> None:
    worker = await make_worker(database)
    lanes = [await make_lane(database, handler=name) for name in ("a", "b", "c")]
    for number, lane in enumerate(lanes):
        job = await make_job(database, lane_id=lane)
        for step in range(10):
            await make_execution(database, job, rank=float(3 * step + number))
    ranks = [
        got.rank
        for _ in range(4)
        for got in await claim(database, wanted(worker, lanes[:2], bite=5), NOW)
    ]
    assert ranks == [float(rank) for rank in range(30) if rank % 3 < 2]
    assert [got.rank for got in await claim(database, wanted(worker, lanes), NOW)] == [
        float(rank) for rank in range(2, 30, 3)
    ]


@pytest.mark.parametrize(
    "state",
    [
        {"status": "PENDING", "available_at": NOW + timedelta(hours=1)},
        {"status": "WAITING"},
        {"status": "RETRYING"},
        {"status": "QUEUED", "start_by": NOW},
        {"status": "RUNNING"},
    ],
    ids=["future", "held", "in backoff", "past its start deadline", "running"],
)
async def test_what_may_not_run_is_not_claimed(database: Database, state: dict[str, Any]) -> None:
    worker = await make_worker(database)
    made = await make_execution(database, **state)
    assert await claim(database, wanted(worker, [made.lane_id], look=Look.EVERYWHERE), NOW) == ()
    row = await database.fetch_row(READ, made.execution_id)
    assert row is not None
    assert row["worker_id"] == made.worker_id


async def test_before_its_start_deadline_it_is_claimed(database: Database) -> None:
    worker = await make_worker(database)
    made = await make_execution(database, start_by=NOW + timedelta(microseconds=1))
    assert len(await claim(database, wanted(worker, [made.lane_id]), NOW)) == 1


async def test_a_ranked_row_that_is_not_runnable_yet_is_unranked(database: Database) -> None:
    worker = await make_worker(database)
    made = await make_execution(database)
    await database.execute(sql("update foliot.executions set rank = null"))
    assert await claim(database, wanted(worker, [made.lane_id], look=Look.EVERYWHERE), NOW) == ()


@pytest.mark.parametrize("status", ["DRAINING", "DEAD", None])
async def test_a_worker_that_is_not_active_gets_nothing(
    database: Database, status: str | None
) -> None:
    made = await make_execution(database)
    worker = WorkerId(uuid4()) if status is None else await make_worker(database, status=status)
    assert await claim(database, wanted(worker, [made.lane_id]), NOW) == ()


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(database: Database) -> None:
    worker, made = await make_worker(database), await make_execution(database)
    await insert_rows(database, "queues", [{"name": "default", "paused_at": NOW}])
    assert await claim(database, wanted(worker, [made.lane_id]), NOW) == ()
    await database.execute(sql("update foliot.queues set paused_at = null"))
    assert len(await claim(database, wanted(worker, [made.lane_id]), NOW)) == 1


async def test_other_lanes_are_not_served(database: Database) -> None:
    worker, made = await make_worker(database), await make_execution(database)
    other = await make_lane(database, handler="other")
    assert await claim(database, wanted(worker, [other]), NOW) == ()
    assert await claim(database, wanted(worker, []), NOW) == ()
    assert await claim(database, wanted(worker, [made.lane_id], bite=0), NOW) == ()
    assert len(await claim(database, wanted(worker, [made.lane_id] * 2), NOW)) == 1


async def test_a_worker_of_a_tenant_claims_that_tenants_work_alone(database: Database) -> None:
    tenant = await make_tenant(database)
    lane = await make_lane(database)
    other_lane = await make_lane(database, handler="other")
    theirs = await make_job(database, lane_id=lane)
    own = await make_job(database, tenant_id=tenant, priority=2)
    low = await make_job(database, tenant_id=tenant, priority=9)
    elsewhere = await make_job(database, tenant_id=tenant, lane_id=other_lane)
    await make_executions(database, theirs, 5)
    await make_execution(database, own, rank=7.0)
    await make_execution(database, low, rank=6.5)
    await make_execution(database, elsewhere, rank=1.0)
    worker = await make_worker(database, tenant_id=tenant)
    claims = await claim(database, wanted(worker, [lane], bite=10), NOW)
    assert [got.rank for got in claims] == [6.5, 7.0]
    # The lane's clock stays at what others may still take.
    assert [tuple(row) for row in await database.fetch(CLOCKS)] == [(lane, 1.0)]
    shared = await make_worker(database)
    later = await claim(database, wanted(shared, [lane]), NOW + timedelta(minutes=1))
    assert [got.rank for got in later] == [1.0, 2.0, 3.0, 4.0, 5.0]


async def test_a_worker_of_a_tenant_takes_what_was_left_behind_below_its_lanes_mark(
    database: Database,
) -> None:
    tenant = await make_tenant(database)
    job = await make_job(database, tenant_id=tenant)
    fresh_lane = await make_lane(database, handler="other")  # nothing of it was ever claimed
    await make_execution(database, job, rank=100.0)
    shared = await make_worker(database)
    await claim(database, wanted(shared, [job.lane_id]), NOW)
    await make_execution(database, job, rank=50.0)
    worker = await make_worker(database, tenant_id=tenant)
    request = wanted(worker, [job.lane_id, fresh_lane], look=Look.NEAR)
    claims = await claim(database, request, NOW + timedelta(seconds=5))
    assert [got.rank for got in claims] == [50.0]
    assert [tuple(row) for row in await database.fetch(CLOCKS)] == [(job.lane_id, 100.0)]


async def test_a_claim_passes_over_what_is_below_its_mark_and_a_farther_look_finds_it(
    database: Database,
) -> None:
    worker, job = await make_worker(database), await make_job(database)
    lane = [job.lane_id]

    async def at(seconds: float, look: Look = Look.FAR) -> list[float]:
        now = NOW + timedelta(seconds=seconds)
        return [got.rank for got in await claim(database, wanted(worker, lane, look=look), now)]

    await make_execution(database, job, rank=100.0)
    assert await at(0) == [100.0]
    await make_execution(database, job, rank=40.0)
    assert await at(0.9, Look.NEAR) == [40.0]
    await make_execution(database, job, rank=45.0)
    assert await at(1.5, Look.NEAR) == []
    assert await at(1.5) == [45.0]
    # Ranked while the claim above was on its way: seen for ten seconds, whatever its rank.
    await make_execution(database, job, rank=50.0)
    assert await at(9) == [50.0]
    await make_execution(database, job, rank=60.0)
    assert await at(10) == [60.0]
    await make_execution(database, job, rank=70.0)
    assert await at(20.001) == [70.0]
    await make_execution(database, job, rank=55.0)
    assert await at(40) == []
    assert await at(40, Look.EVERYWHERE) == [55.0]


async def test_what_was_claimed_can_be_read_without_a_lock(database: Database) -> None:
    job = await make_job(database, payload={"from": "job"}, tags=["t"])
    first, second = await make_executions(database, job, 2)
    await database.execute(
        sql("update foliot.executions set payload = $2, idempotency_key = 'k' where id = $1"),
        second.execution_id,
        {"own": 1},
    )
    worker = await make_worker(database)
    claims = await claim(database, wanted(worker, [job.lane_id]), NOW)
    async with database.transaction() as session:
        await session.execute(sql("select 1 from foliot.executions for update"))
        one, two = await read_claimed(database, worker, claims)
    assert (one.execution_id, two.execution_id) == (first.execution_id, second.execution_id)
    assert (one.payload, two.payload) == ({"from": "job"}, {"own": 1})
    assert (one.payload_is_jobs, two.payload_is_jobs) == (True, False)
    assert (one.idempotency_key, two.idempotency_key) == (str(first.execution_id), "k")
    assert (one.fence, one.attempt_number, one.claimed_at) == (1, 1, NOW)
    assert (one.trigger, one.job_name) == (Trigger.SCHEDULE, job.name)
    assert one.instructions is not None
    assert one.instructions.target == HandlerTarget("work")
    assert one.instructions.retry_policy == RetryPolicy()
    assert one.instructions.timeout_seconds == 300


async def test_what_is_no_longer_ours_is_not_read(database: Database) -> None:
    job = await make_job(database)
    await make_executions(database, job, 3)
    worker, other = await make_worker(database), await make_worker(database)
    mine, gone, stale = await claim(database, wanted(worker, [job.lane_id]), NOW)
    change = sql("update foliot.executions set worker_id = $2, fence = $3 where id = $1")
    await database.execute(change, gone.execution_id, other, gone.fence)
    await database.execute(change, stale.execution_id, worker, stale.fence + 1)
    read = await read_claimed(database, worker, [stale, mine, gone])
    assert [each.execution_id for each in read] == [mine.execution_id]


@pytest.mark.parametrize(
    "definition", [None, "{}", '{"target": {"type": "NEW"}}', '{"target": {"type": "HTTP"}}']
)
def test_a_version_that_cannot_be_read_harms_no_neighbour(definition: str | None) -> None:
    assert read_instructions(definition) is None


async def test_the_clock_of_a_lane_follows_what_was_claimed(database: Database) -> None:
    worker, job = await make_worker(database), await make_job(database)
    await make_executions(database, job, 9)
    for step in range(3):
        later: datetime = NOW + timedelta(seconds=step)
        await claim(database, wanted(worker, [job.lane_id], bite=3), later)
    clocks = [row["virtual_time"] for row in await database.fetch(CLOCKS)]
    assert clocks == [3.0, 6.0, 9.0]
    assert all(low < high for low, high in pairwise(clocks))
