"""A worker's trades on a real database, one pass at a time, with a runner that runs nothing."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest_asyncio

from foliot.core.model import ErrorType, Failure
from foliot.core.states import WorkerState
from foliot.store.cancelling import cancel
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.workers import bury_silent
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.fake_runner import FakeRunner
from foliot.testing.rows import (
    DEFAULT_TENANT,
    ExecutionRow,
    make_executions,
    make_job,
    make_lane,
)
from foliot.testing.worker_bench import Bench, worker_bench
from foliot.worker.claim import ClaimReport
from foliot.worker.tasks import Crashed, Failed, Snoozed, Succeeded, Task

BROKEN = Failure(ErrorType.HANDLER_ERROR, "broken")


@pytest_asyncio.fixture
async def bench(database: Database) -> AsyncIterator[Bench]:
    async with worker_bench(database) as made:
        yield made


async def queue_up(database: Database, number: int, **changes: Any) -> list[ExecutionRow]:  # noqa: ANN401
    return await make_executions(
        database, await make_job(database, payload={"n": 1}), number, **changes
    )


def never(_: Task) -> None:
    return None


async def test_what_is_queued_is_claimed_run_and_written(bench: Bench) -> None:
    rows = await queue_up(bench.database, 3)
    bench.runner.answer = lambda task: Succeeded({"was": task.payload})
    assert await bench.work() == ClaimReport(3, full=False)
    assert await bench.live() == []
    history = await bench.history()
    assert {row["id"] for row in history} == {row.execution_id for row in rows}
    assert {row["status"] for row in history} == {"SUCCEEDED"}
    assert history[0]["result"] == {"was": {"n": 1}}
    assert all(row["claimed_at"] <= row["started_at"] <= row["finished_at"] for row in history)
    assert len(bench.attempts.hand) == 0
    assert bench.attempts.finisher.unwritten == 0


async def test_slow_attempts_are_claimed_one_slot_at_a_time(bench: Bench) -> None:
    await queue_up(bench.database, 25)
    bench.runner.answer = never
    assert await bench.work() == ClaimReport(10, full=False)
    assert await bench.work() == ClaimReport(0, full=True)
    assert len(bench.runner.under_way) == 10
    bench.runner.end(bench.runner.tasks[0].execution_id, Succeeded())
    await bench.settle()
    assert (await bench.work()).claimed == 1
    assert len([row for row in await bench.live() if row["worker_id"]]) == 10


async def test_the_end_of_an_attempt_wakes_a_claimer_that_was_full(bench: Bench) -> None:
    await queue_up(bench.database, 11)
    bench.runner.answer = never
    bench.attempts.on_room = bench.claimer.hear_of_room
    await bench.claimer.step()
    assert await bench.claimer.step() == 0.25
    await bench.settle()
    bench.runner.end(bench.runner.tasks[0].execution_id, Succeeded())
    await bench.settle()
    async with asyncio.timeout(5):
        await bench.claimer.hint.wait(3600, _Never())


class _Never(ManualClock):
    async def sleep(self, seconds: float) -> None:  # noqa: ARG002
        await asyncio.Event().wait()


async def test_quick_attempts_are_fetched_ahead(bench: Bench) -> None:
    await queue_up(bench.database, 300)
    claimed = [(await bench.work()).claimed for _ in range(5)]
    assert claimed[0] == 10
    assert claimed[-1] > 10, "a tenth of a second of throughput on top of the slots"


async def test_what_cannot_begin_within_a_second_goes_back_and_costs_nothing(bench: Bench) -> None:
    await queue_up(bench.database, 40)
    for _ in range(2):
        await bench.work()
    bench.runner.answer = never
    report = await bench.claimer.run_once()
    assert report.claimed > 10
    await asyncio.sleep(0)
    assert bench.attempts.give_back_overdue() == 0
    bench.clock.seconds += 1.01
    waiting = bench.attempts.hand.waiting
    assert waiting > 0
    assert bench.attempts.give_back_overdue() == waiting
    await bench.settle()
    back = [row for row in await bench.live() if row["worker_id"] is None]
    assert len([row for row in back if row["fence"] == 1]) == waiting
    assert {row["attempt_number"] for row in back} == {0}
    assert bench.attempts.hand.running == 10


async def test_a_worker_that_leaves_gives_back_what_waits_and_begins_nothing(bench: Bench) -> None:
    await queue_up(bench.database, 200)
    for _ in range(2):
        await bench.work()
    bench.runner.answer = never
    begun = len(bench.runner.tasks)
    await bench.claimer.run_once()
    assert bench.attempts.hand.waiting > 0
    bench.attempts.leave()
    assert bench.attempts.hand.waiting == 0
    await bench.settle()
    assert (await bench.work()).claimed == 0
    assert len(bench.runner.tasks) == begun + 10
    back = [row["attempt_number"] for row in await bench.live() if row["worker_id"] is None]
    assert set(back) == {0}


async def test_lanes_that_a_worker_cannot_serve_are_left_alone(database: Database) -> None:
    lanes = {
        "plain": await make_lane(database),
        "mail": await make_lane(database, "mail"),
        "gpu": await make_lane(database, requires=["gpu"]),
        "eu": await make_lane(database, region="eu"),
        "us": await make_lane(database, region="us"),
        "tpu": await make_lane(database, requires=["gpu", "tpu"]),
        "other queue": await make_lane(database, "reports"),
        "other handler": await make_lane(database, handler="unknown"),
        "http": await make_lane(database, target_type="HTTP", handler=None),
    }
    for name, lane_id in lanes.items():
        queue = {"mail": "mail", "other queue": "reports"}.get(name, "default")
        job = await make_job(database, name=name, lane_id=lane_id, queue=queue)
        await make_executions(database, job, 1)
    async with worker_bench(
        database, queues=["default", "mail"], labels=["gpu"], region="eu"
    ) as bench:
        await bench.work()
        done = {row["job_name"] for row in await bench.history()}
        assert done == {"plain", "mail", "gpu", "eu"}
        assert {row["status"] for row in await bench.live()} == {"QUEUED"}


async def test_a_star_serves_every_queue(database: Database) -> None:
    for queue in ("one", "two"):
        await make_executions(database, await make_job(database, queue=queue), 1)
    async with worker_bench(database, queues=["*"]) as bench:
        assert (await bench.work()).claimed == 2


async def test_a_new_lane_is_served_soon(bench: Bench) -> None:
    assert (await bench.work()).claimed == 0
    await queue_up(bench.database, 1)
    assert (await bench.work()).claimed == 0
    bench.clock.seconds += 0.5
    assert (await bench.work()).claimed == 1


async def test_a_full_queue_does_not_keep_the_others_waiting(database: Database) -> None:
    for queue in ("a", "b"):
        await make_executions(database, await make_job(database, queue=queue), 5)
    slow = FakeRunner(never)
    async with worker_bench(database, slow, queues=["a", "b"], capacity=1) as bench:
        for _ in range(4):
            assert (await bench.work()).claimed == 1
            slow.end(slow.tasks[-1].execution_id, Succeeded())
            await bench.settle()
            bench.clock.seconds += 2
        history = await bench.history()
    assert sorted(row["queue"] for row in history) == ["a", "a", "b", "b"]


async def test_a_failure_is_tried_again_and_at_last_is_a_dead_letter(bench: Bench) -> None:
    (row,) = await queue_up(bench.database, 1)
    bench.runner.answer = lambda _: Failed(BROKEN)
    await bench.work()
    (live,) = await bench.live()
    assert (live["status"], live["attempt_number"]) == ("RETRYING", 1)
    (attempt,) = await bench.history()
    assert attempt["error"]["message"] == "broken"
    await bench.database.execute(
        sql("update foliot.executions set status = 'QUEUED', rank = 1, attempt_number = 3")
    )
    await bench.work()
    assert await bench.live() == []
    reason = await bench.database.fetch_value(
        sql("select reason from foliot.dead_letters where id = $1"), row.execution_id
    )
    assert reason == "EXHAUSTED"


async def test_failures_within_the_window_are_poison(bench: Bench) -> None:
    (row,) = await queue_up(bench.database, 1)
    await bench.database.execute(
        sql(
            "update foliot.job_versions set definition = definition ||"
            ' \'{"retry_policy": {"max_attempts": 9, "poison_window_seconds": 60}}\''
        )
    )
    bench.runner.answer = lambda _: Failed(BROKEN)
    for _ in range(3):
        await bench.work()
        await asyncio.gather(*bench.tasks)
        await bench.settle()
        await bench.database.execute(
            sql("update foliot.executions set status = 'QUEUED', rank = 1, worker_id = null")
        )
    assert await bench.live() == []
    reason = await bench.database.fetch_value(
        sql("select reason from foliot.dead_letters where id = $1"), row.execution_id
    )
    assert reason == "POISON"


async def test_a_crash_alone_is_counted_and_runs_alone_again(bench: Bench) -> None:
    await queue_up(bench.database, 1)
    died = Failure(ErrorType.WORKER_LOST, "signal 11")
    bench.runner.answer = lambda task: Crashed(died, alone=task.run_alone)
    await bench.work()
    (live,) = await bench.live()
    assert (live["status"], live["run_alone"], live["crash_count"]) == ("QUEUED", True, 0)
    assert len(bench.attempts.hand) == 0
    await bench.database.execute(sql("update foliot.executions set rank = 1"))
    await bench.work()
    (live,) = await bench.live()
    assert (live["crash_count"], live["attempt_number"]) == (1, 2)


async def test_a_snooze_gives_the_attempt_back(bench: Bench) -> None:
    await queue_up(bench.database, 1)
    bench.runner.answer = lambda _: Snoozed(60)
    await bench.work()
    (live,) = await bench.live()
    assert (live["status"], live["attempt_number"], live["fence"]) == ("PENDING", 0, 1)


async def test_an_execution_that_cannot_be_read_fails_in_clear_words(bench: Bench) -> None:
    await queue_up(bench.database, 1)
    await bench.database.execute(
        sql('update foliot.job_versions set definition = \'{"target": {"type": "ORACLE"}}\'')
    )
    await bench.work()
    (attempt,) = await bench.history()
    assert attempt["status"] == "FAILED"
    assert "cannot read the job's version" in attempt["error"]["message"]
    assert bench.runner.tasks == []


async def test_a_heartbeat_names_what_has_begun(bench: Bench) -> None:
    await queue_up(bench.database, 1)
    bench.runner.answer = never
    await bench.work()
    assert (await bench.heartbeat.run_once()).status is WorkerState.ACTIVE
    started = await bench.database.fetch_value(
        sql("select started from foliot.workers where id = $1"), bench.worker_id
    )
    assert started == [bench.runner.tasks[0].execution_id]


async def test_a_claim_whose_answer_was_lost_goes_back_after_two_heartbeats(bench: Bench) -> None:
    (row,) = await queue_up(bench.database, 1)
    request = ClaimRequest(bench.worker_id, "default", [row.lane_id], 1)
    assert len(await claim(bench.database, request)) == 1
    assert (await bench.heartbeat.run_once()).handed_back == 0
    assert (await bench.heartbeat.run_once()).handed_back == 1
    await bench.settle()
    (live,) = await bench.live()
    assert (live["status"], live["attempt_number"], live["fence"]) == ("QUEUED", 0, 1)
    assert (await bench.heartbeat.run_once()).handed_back == 0


async def test_what_is_being_read_or_has_just_ended_is_not_handed_back(bench: Bench) -> None:
    (row,) = await queue_up(bench.database, 1)
    request = ClaimRequest(bench.worker_id, "default", [row.lane_id], 1)
    (claimed,) = await claim(bench.database, request)
    bench.attempts.expect([(claimed.execution_id, claimed.fence)])
    for _ in range(3):
        assert (await bench.heartbeat.run_once()).handed_back == 0


async def test_a_request_to_cancel_reaches_what_runs(bench: Bench) -> None:
    rows = await queue_up(bench.database, 2)
    bench.runner.answer = never
    await bench.work()
    for row in rows:
        await cancel(bench.database, DEFAULT_TENANT, [row.execution_id], "enough")
        if row is rows[0]:
            assert (await bench.heartbeat.run_once()).cancelled == 1
        else:
            assert await bench.heartbeat.stop_cancelled() == 1
        await bench.settle()
        assert (row.execution_id, "cancelled on request") in bench.runner.cancelled
    assert {row["status"] for row in await bench.history()} == {"CANCELLED"}
    assert await bench.live() == []


async def test_what_waits_and_is_cancelled_never_begins(bench: Bench) -> None:
    await queue_up(bench.database, 12)
    bench.runner.answer = never
    await bench.work()
    waiting = await claim(bench.database, ClaimRequest(bench.worker_id, "default", [1], 5))
    await cancel(bench.database, DEFAULT_TENANT, [waiting[0].execution_id], "enough")
    await bench.claimer._take(waiting)
    await bench.settle()
    (cancelled,) = await bench.history()
    assert (cancelled["id"], cancelled["status"]) == (waiting[0].execution_id, "CANCELLED")
    assert cancelled["started_at"] is None


async def test_what_was_taken_away_is_let_go(bench: Bench) -> None:
    """The server's second line ended it; what still runs here is nobody's."""
    (row,) = await queue_up(bench.database, 1)
    bench.runner.answer = never
    await bench.work()
    await bench.database.execute(
        sql("update foliot.executions set worker_id = null, status = 'QUEUED', rank = null")
    )
    report = await bench.heartbeat.run_once()
    assert report.let_go == 1
    await bench.settle()
    assert bench.runner.cancelled[0][0] == row.execution_id
    (live,) = await bench.live()
    assert (live["status"], live["attempt_number"]) == ("QUEUED", 1), (
        "the late word changes nothing"
    )


async def test_a_dead_worker_learns_it_from_its_heartbeat(bench: Bench) -> None:
    now = await bench.database.fetch_value(sql("select statement_timestamp()"))
    await bury_silent(bench.database, now=now + timedelta(seconds=16))
    assert (await bench.heartbeat.run_once()).status is None
