"""What a worker does when it is told of work, and whom it tells of what it has done."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from foliot.core.model import OverlapPolicy
from foliot.runtime.clock import SystemClock
from foliot.store.cancelling import cancel
from foliot.store.database import Database
from foliot.testing.database import sql
from foliot.testing.fake_runner import FakeRunner
from foliot.testing.loopback import Loopback
from foliot.testing.rows import (
    DEFAULT_TENANT,
    HOURLY,
    make_execution,
    make_executions,
    make_job,
    make_lane,
    make_worker,
)
from foliot.testing.worker_bench import worker_bench
from foliot.transport.port import Matter
from foliot.worker.claim import COUNT_SECONDS, LANES_SECONDS_HINTED, ROUND_SECONDS
from foliot.worker.tasks import Snoozed

FOLLOW = sql(
    "insert into foliot.job_parents (parent_id, child_id, tenant_id, needs_success)"
    " values ($1, $2, $3, false)"
)


async def queue_up(database: Database, queue: str, **changes: Any) -> None:  # noqa: ANN401
    lane_id = await make_lane(database, queue)
    job = await make_job(database, queue=queue, lane_id=lane_id)
    await make_execution(database, job, queue=queue, lane_id=lane_id, **changes)


async def test_only_the_queues_that_a_hint_names_are_asked(database: Database) -> None:
    async with worker_bench(database, queues=["a", "b"]) as bench:
        for queue in ("a", "b"):
            await queue_up(database, queue)
        assert (await bench.work()).claimed == 2
        for queue in ("a", "b"):
            await queue_up(database, queue)
        bench.claimer.waking.hear(frozenset({"a", "c"}))
        assert (await bench.work()).claimed == 1
        assert [row["queue"] for row in await bench.live()] == ["b"]
        assert (await bench.work()).claimed == 1, "a look without a hint is at all of them"


async def test_hints_about_one_queue_keep_no_other_waiting(database: Database) -> None:
    async with worker_bench(database, queues=["a", "b"]) as bench:
        for queue in ("a", "b"):
            await make_lane(database, queue)
        await bench.work()
        await queue_up(database, "b")
        bench.claimer.waking.hear(frozenset({"a"}))
        assert (await bench.work()).claimed == 0
        bench.clock.seconds += ROUND_SECONDS
        bench.claimer.waking.hear(frozenset({"a"}))
        assert (await bench.work()).claimed == 1


async def test_a_full_queue_with_hints_keeps_no_other_waiting(database: Database) -> None:
    async with worker_bench(database, queues=["a", "b"], capacity=1) as bench:
        await make_lane(database, "b")
        for _ in range(40):
            await queue_up(database, "a")
        await bench.claimer.step()
        await bench.settle()
        await queue_up(database, "b")
        for _ in range(12):
            bench.claimer.waking.hear(frozenset({"a"}))
            await bench.claimer.step()
            await bench.settle()
            bench.clock.seconds += ROUND_SECONDS / 4
        left = {row["queue"] for row in await bench.live()}
        assert left == {"a"}


async def test_the_first_job_of_a_new_lane_is_found_at_a_hint(database: Database) -> None:
    async with worker_bench(database) as bench:
        await bench.work()
        await queue_up(database, "default")
        bench.clock.seconds += LANES_SECONDS_HINTED
        assert (await bench.work()).claimed == 0, "the lanes are known for a while"
        bench.claimer.waking.hear(frozenset({"default"}))
        assert (await bench.work()).claimed == 1


async def test_lanes_are_not_read_at_every_hint_but_soon_after(database: Database) -> None:
    async with worker_bench(database) as bench:
        while await bench.claimer.step() <= LANES_SECONDS_HINTED:
            pass
        await queue_up(database, "default")
        bench.claimer.waking.hear(frozenset({"default"}))
        pause = await bench.claimer.step()
        assert len(bench.runner.tasks) == 0
        assert pause <= LANES_SECONDS_HINTED
        bench.clock.seconds += LANES_SECONDS_HINTED
        await bench.claimer.step()
        await bench.settle()
        assert len(bench.runner.tasks) == 1


async def test_it_knows_how_many_hear_the_same_hints(database: Database) -> None:
    transport = Loopback()
    async with worker_bench(database, transport=transport, queues=["a", "b"]) as bench:
        for queues in (["a"], ["c"], ["*"], ["b", "c"]):
            await make_worker(database, queues=queues)
        await make_worker(database, queues=["a"], status="DRAINING")
        await bench.work()
        assert bench.claimer.waking.workers == 1, "nobody hears any yet"
        transport.begin()
        await bench.work()
        assert bench.claimer.waking.workers == 4
        await make_worker(database, queues=["a"])
        await bench.work()
        assert bench.claimer.waking.workers == 4
        bench.clock.seconds += COUNT_SECONDS
        await bench.work()
        assert bench.claimer.waking.workers == 5


@pytest.mark.parametrize(
    ("changes", "policy", "followed", "told"),
    [
        ({}, OverlapPolicy.SKIP, False, set()),
        ({"limit_keys": ["job:1"]}, OverlapPolicy.SKIP, False, {Matter.ADMIT}),
        ({}, OverlapPolicy.QUEUE_ALL, False, {Matter.OVERLAP}),
        ({"trigger": "MANUAL"}, OverlapPolicy.QUEUE_ALL, False, set()),
        ({}, OverlapPolicy.SKIP, True, {Matter.AFTER}),
    ],
)
async def test_who_may_wait_for_an_end_is_told_of_it(
    database: Database,
    changes: dict[str, object],
    policy: OverlapPolicy,
    followed: bool,
    told: set[Matter],
) -> None:
    transport = Loopback()
    async with worker_bench(database, transport=transport) as bench:
        job = await make_job(database, replace(HOURLY, overlap_policy=policy))
        if followed:
            child = await make_job(database)
            await database.execute(FOLLOW, job.job_id, child.job_id, DEFAULT_TENANT)
        await make_execution(database, job, **changes)
        assert (await bench.work()).claimed == 1
        assert {matter for matter, _ in transport.published} == told


async def test_what_is_handed_back_is_to_be_released(database: Database) -> None:
    transport = Loopback()
    async with worker_bench(database, transport=transport, capacity=1) as bench:
        bench.runner.answer = lambda _: None
        await make_executions(database, await make_job(database), 1)
        await bench.work()
        bench.attempts.leave()
        for grip in bench.attempts.hand:
            bench.runner.cancel(grip.execution_id, "leaving")
        await bench.settle()
        assert {row["status"] for row in await bench.live()} == {"QUEUED"}
        assert transport.published == [(Matter.RELEASE, frozenset())]


@pytest.mark.parametrize(("seconds", "told"), [(0.5, [Matter.RELEASE]), (60.0, [])])
async def test_what_comes_back_soon_is_news_and_what_comes_later_is_known_by_then(
    database: Database, seconds: float, told: list[Matter]
) -> None:
    transport, runner = Loopback(), FakeRunner(lambda _: Snoozed(seconds))
    async with worker_bench(database, runner, transport=transport) as bench:
        await make_execution(database)
        assert (await bench.work()).claimed == 1
        assert [matter for matter, _ in transport.published] == told


async def test_a_hint_to_cancel_is_for_the_worker_that_runs_it(database: Database) -> None:
    async with worker_bench(database) as bench:
        bench.runner.answer = lambda _: None
        row = await make_execution(database)
        await bench.work()
        other = await make_execution(database)
        await cancel(database, DEFAULT_TENANT, [row.execution_id], "enough")
        heartbeat = bench.heartbeat
        heartbeat.hear_of_cancels(frozenset({str(other.execution_id), "nonsense"}))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(heartbeat.cancels.wait(3600, SystemClock()), 0.02)
        heartbeat.hear_of_cancels(frozenset({str(row.execution_id)}))
        await heartbeat.cancels.wait(3600, SystemClock())
        assert await heartbeat.stop_cancelled() == 1
        assert bench.runner.cancelled[0][0] == row.execution_id
