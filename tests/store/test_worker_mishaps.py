"""What goes wrong around a worker: rows that it cannot read, claims that come too late."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from foliot.core.ids import ExecutionId
from foliot.core.model import ErrorType, Failure
from foliot.store.claiming import ClaimRequest, claim, read_claimed
from foliot.store.database import Database
from foliot.store.rescuing import rescue_lost
from foliot.store.workers import deregister
from foliot.testing.database import sql
from foliot.testing.rows import ExecutionRow, make_executions, make_job
from foliot.testing.worker_bench import Bench, worker_bench
from foliot.worker.tasks import Failed, Succeeded, Task

BROKEN = Failure(ErrorType.HANDLER_ERROR, "broken")


@pytest_asyncio.fixture
async def bench(database: Database) -> AsyncIterator[Bench]:
    async with worker_bench(database) as made:
        yield made


async def queue_up(database: Database, number: int) -> list[ExecutionRow]:
    return await make_executions(database, await make_job(database), number)


def never(_: Task) -> None:
    return None


async def test_a_row_that_cannot_be_read_keeps_no_other_from_being_run(bench: Bench) -> None:
    """A newer Foliot may know triggers that this one does not."""
    strange, *others = await queue_up(bench.database, 3)
    await bench.database.execute(
        sql("update foliot.executions set trigger = 'OMEN' where id = $1"), strange.execution_id
    )
    await bench.work()
    assert {row["id"] for row in await bench.history()} == {row.execution_id for row in others}
    for _ in range(2):
        await bench.heartbeat.run_once()
    await bench.settle()
    (left,) = await bench.live()
    assert (left["worker_id"], left["attempt_number"]) == (None, 0)


async def test_a_policy_that_cannot_be_read_costs_no_worker(bench: Bench) -> None:
    await queue_up(bench.database, 1)
    await bench.database.execute(
        sql(
            "update foliot.job_versions set definition ="
            " jsonb_set(definition, '{retry_policy}', '{\"max_attempts\": \"four\"}')"
        )
    )
    bench.runner.answer = lambda _: Failed(BROKEN)
    await bench.work()
    assert bench.attempts.hand.running == 0
    (row,) = await bench.history()
    assert (row["status"], row["final"]) == ("FAILED", True)
    assert "cannot read the job's version" in row["error"]["message"]


async def test_a_number_larger_than_integers_are_arrives_as_a_number(bench: Bench) -> None:
    """The database writes 1e300 out in full."""
    await queue_up(bench.database, 1)
    await bench.database.execute(
        sql(
            "update foliot.executions set payload ="
            " '[1e300, -1e25, 7, 9223372036854775807, -9223372036854775808]'"
        )
    )
    await bench.work()
    (task,) = bench.runner.tasks
    assert task.payload == [1e300, -1e25, 7, 2**63 - 1, -(2**63)]
    assert [type(n) for n in task.payload] == [float, float, int, int, int]


async def test_a_claim_that_lay_about_for_a_second_does_not_begin(bench: Bench) -> None:
    """As after a freeze: it may have begun elsewhere."""
    await queue_up(bench.database, 40)
    for _ in range(2):
        await bench.work()
    bench.runner.answer = never
    await bench.claimer.run_once()
    await asyncio.sleep(0)
    waiting, begun = bench.attempts.hand.waiting, len(bench.runner.tasks)
    assert waiting
    bench.clock.seconds += 1.01
    for execution_id in bench.runner.under_way:
        bench.runner.end(execution_id, Succeeded())
    await bench.settle()
    assert len(bench.runner.tasks) == begun
    assert bench.attempts.hand.waiting == 0


async def test_a_claim_that_was_given_up_for_lost_does_not_begin_when_its_answer_comes(
    bench: Bench,
) -> None:
    rows = await queue_up(bench.database, 2)
    lanes = [rows[0].lane_id]
    claims = await claim(bench.database, ClaimRequest(bench.worker_id, "default", lanes, 2))
    for _ in range(2):
        await bench.heartbeat.run_once()
    # It goes back, which is not written yet; now the answer comes.
    batch = await read_claimed(bench.database, bench.worker_id, claims)
    assert len(batch) == 2
    bench.attempts.accept(batch, bench.clock.monotonic())
    await bench.settle()
    assert bench.runner.tasks == []
    assert {row["worker_id"] for row in await bench.live()} == {None}


async def test_a_policy_that_cannot_be_read_keeps_nobody_in_dead_hands(bench: Bench) -> None:
    await queue_up(bench.database, 2)
    bench.runner.answer = never
    await bench.work()
    await bench.database.execute(
        sql(
            "update foliot.job_versions set definition ="
            " jsonb_set(definition, '{retry_policy}', '{\"max_crashes\": \"three\"}')"
        )
    )
    await bench.database.execute(
        sql("update foliot.executions set run_alone = true where worker_id is not null")
    )
    started = [task.execution_id for task in bench.runner.tasks]
    await deregister(bench.database, bench.worker_id, [ExecutionId(each) for each in started])
    assert len((await rescue_lost(bench.database)).changed) == 2
