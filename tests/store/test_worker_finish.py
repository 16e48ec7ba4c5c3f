"""Nothing that ended is lost or written twice, whatever becomes of the answers."""

from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from foliot.core.ids import ExecutionId
from foliot.core.model import ErrorType, Failure
from foliot.core.states import ExecutionEvent, ExecutionState
from foliot.store.claiming import Claim, ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown
from foliot.store.finishing import Outcome
from foliot.store.rescuing import Verdict
from foliot.store.statements import Statement
from foliot.testing.database import sql
from foliot.testing.rows import make_executions, make_job
from foliot.testing.worker_bench import Bench, worker_bench
from foliot.worker.finish import Finisher


@pytest_asyncio.fixture
async def bench(database: Database) -> AsyncIterator[Bench]:
    async with worker_bench(database) as made:
        yield made


async def claim_some(bench: Bench, number: int) -> tuple[Claim, ...]:
    job = await make_job(bench.database)
    await make_executions(bench.database, job, number)
    request = ClaimRequest(bench.worker_id, "default", [job.lane_id], number)
    return await claim(bench.database, request)


class Forgetful(Database):
    """Does what it is asked, and loses the answer so many times."""

    losses = 0

    async def fetch(self, statement: Statement, *arguments: object) -> list[asyncpg.Record]:
        rows = await super().fetch(statement, *arguments)
        self._lose()
        return rows

    async def fetch_row(self, statement: Statement, *arguments: object) -> asyncpg.Record | None:
        row = await super().fetch_row(statement, *arguments)
        self._lose()
        return row

    def _lose(self) -> None:
        if self.losses:
            self.losses -= 1
            raise CommitUnknown(self.url, "the answer is lost")


async def test_what_may_have_been_written_is_looked_up_before_it_is_written_again(
    bench: Bench, database_url: str
) -> None:
    heard: list[ExecutionState | None] = []
    claims = await claim_some(bench, 3)
    async with Forgetful(database_url) as line:
        finisher = Finisher(
            line, bench.worker_id, lambda _, state: heard.append(state), bench.clock
        )
        for each in claims[:2]:
            finisher.put(_success(each.execution_id, each.fence))
        line.losses = 3
        for _ in range(2):
            with pytest.raises(CommitUnknown):
                await finisher.run_once()
            assert finisher.unwritten >= 2
            assert heard == []
        finisher.put(_success(claims[2].execution_id, claims[2].fence))
        await finisher.run_once()
        assert heard == [ExecutionState.SUCCEEDED] * 2
        await finisher.run_once()
    assert heard == [ExecutionState.SUCCEEDED] * 3
    assert finisher.unwritten == 0
    assert len(await bench.history()) == 3


def _success(execution_id: ExecutionId, fence: int) -> Outcome:
    return Outcome(execution_id, fence, ExecutionEvent.SUCCEED)


async def test_a_crash_whose_row_is_in_other_hands_is_judged_a_little_later(
    bench: Bench, database_url: str
) -> None:
    heard: list[ExecutionState | None] = []
    (claimed,) = await claim_some(bench, 1)
    finisher = Finisher(
        bench.database, bench.worker_id, lambda _, state: heard.append(state), bench.clock
    )
    died = Failure(ErrorType.WORKER_LOST, "signal 9")
    key = (claimed.execution_id, claimed.fence, bench.worker_id)
    finisher.put(Verdict(*key, ExecutionEvent.LOSE, died, crash_count=1))
    async with Database(database_url) as other, other.transaction() as session:
        await session.fetch(sql("select from foliot.executions for update"))
        for _ in range(20):
            for _ in range(10):
                await finisher.run_once()
            bench.clock.seconds += 0.2
        assert (finisher.unwritten, heard) == (1, [])
    await finisher.run_once()
    assert (finisher.unwritten, heard) == (0, [ExecutionState.QUEUED])


async def test_a_crash_of_what_others_have_is_dropped_in_the_end(bench: Bench) -> None:
    heard: list[ExecutionState | None] = []
    (claimed,) = await claim_some(bench, 1)
    finisher = Finisher(
        bench.database, bench.worker_id, lambda _, state: heard.append(state), bench.clock
    )
    died = Failure(ErrorType.WORKER_LOST, "signal 9")
    key = (claimed.execution_id, claimed.fence - 1, bench.worker_id)
    finisher.put(Verdict(*key, ExecutionEvent.LOSE, died, crash_count=1))
    for _ in range(25):
        await finisher.run_once()
        bench.clock.seconds += 0.2
    assert (finisher.unwritten, heard) == (0, [None])


async def test_a_late_word_about_an_earlier_claim_does_not_hide_the_later_one(
    bench: Bench,
) -> None:
    """Taken away and claimed again by the same worker: both ends may meet in one batch."""
    heard: list[tuple[int, ExecutionState | None]] = []
    (first,) = await claim_some(bench, 1)
    await bench.database.execute(
        sql("update foliot.executions set status = 'QUEUED', worker_id = null, claimed_at = null")
    )
    lanes = [row["lane_id"] for row in await bench.live()]
    (second,) = await claim(bench.database, ClaimRequest(bench.worker_id, "default", lanes, 1))
    assert (second.execution_id, second.fence) == (first.execution_id, first.fence + 1)
    finisher = Finisher(
        bench.database,
        bench.worker_id,
        lambda end, state: heard.append((end.fence, state)),
        bench.clock,
    )
    finisher.put(Outcome(first.execution_id, first.fence, ExecutionEvent.HAND_BACK))
    finisher.put(_success(second.execution_id, second.fence))
    while finisher.unwritten:
        await finisher.run_once()
    assert heard == [(first.fence, None), (second.fence, ExecutionState.SUCCEEDED)]
    assert await bench.live() == []
    assert [row["fence"] for row in await bench.history()] == [second.fence]
