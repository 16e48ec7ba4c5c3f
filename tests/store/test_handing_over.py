"""What an HTTP target takes over stays RUNNING in its hands until it tells the end, or is late."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from foliot.core.ids import WorkerId
from foliot.core.model import ErrorType, Failure
from foliot.core.states import ExecutionEvent, ExecutionState
from foliot.store.cancelling import cancel
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown
from foliot.store.finishing import Outcome, finish
from foliot.store.fleet import list_workers
from foliot.store.handing_over import HandOver, hand_over, read_held
from foliot.store.rescuing import NOT_TOLD, end_overdue, rescue_lost
from foliot.store.statements import Statement
from foliot.store.workers import REMOTE, bury_silent, drain
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.rows import DEFAULT_TENANT, NOW, ExecutionRow, make_execution, make_tenant
from foliot.worker.finish import Finisher

ROW = sql("select * from foliot.executions where id = $1")
ENDS = sql("select * from foliot.attempts order by fence")


async def running(database: Database) -> ExecutionRow:
    return await make_execution(
        database, status="RUNNING", claimed_at=NOW, attempt_number=1, fence=1
    )


def owner(row: ExecutionRow) -> WorkerId:
    assert row.worker_id is not None
    return row.worker_id


async def give(database: Database, row: ExecutionRow, fence: int | None = None) -> bool:
    word = HandOver(row.execution_id, row.fence if fence is None else fence)
    return row.execution_id in await hand_over(database, owner(row), [word])


async def read(database: Database, row: ExecutionRow) -> asyncpg.Record:
    (found,) = await database.fetch(ROW, row.execution_id)
    return found


async def test_it_changes_hands_and_nothing_else(database: Database) -> None:
    row = await running(database)
    before = dict(await read(database, row))
    assert await give(database, row)
    assert dict(await read(database, row)) == before | {"worker_id": REMOTE}


async def test_to_do_it_twice_is_the_same_as_once(database: Database) -> None:
    row = await running(database)
    assert await give(database, row)
    assert await give(database, row)


async def test_only_its_holder_can_give_it_away(database: Database) -> None:
    row, others = await running(database), await running(database)
    assert not await give(database, row, fence=row.fence - 1)
    stranger = HandOver(row.execution_id, row.fence)
    assert await hand_over(database, owner(others), [stranger]) == frozenset()
    assert (await read(database, row))["worker_id"] == row.worker_id


async def test_a_request_to_cancel_that_comes_at_the_same_time_is_not_in_the_way(
    database: Database, database_url: str
) -> None:
    row = await running(database)
    async with Database(database_url) as other:
        async with other.transaction() as session:
            await session.fetch(
                sql("update foliot.executions set cancel_requested_at = $1 returning id"), NOW
            )
            giving = asyncio.get_running_loop().create_task(give(database, row))
            await _until_blocked(other)
        assert await giving
    found = await read(database, row)
    assert (found["worker_id"], found["cancel_requested_at"]) == (REMOTE, NOW)


async def _until_blocked(database: Database) -> None:
    waits = sql("select count(*) from pg_locks where not granted")
    async with asyncio.timeout(10):
        while not await database.fetch_value(waits):
            pass


async def test_nobody_is_rescued_from_a_target(database: Database) -> None:
    row = await running(database)
    await give(database, row)
    for when in (NOW, NOW + timedelta(days=3650)):
        assert REMOTE not in await bury_silent(database, now=when)
    assert not await drain(database, REMOTE)
    assert (await rescue_lost(database, now=NOW)).listed == 0
    assert (await read(database, row))["worker_id"] == REMOTE


async def test_people_do_not_see_who_stands_for_the_targets(database: Database) -> None:
    row = await running(database)
    await give(database, row)
    found = await list_workers(database, DEFAULT_TENANT, None, after=None, limit=10)
    assert REMOTE not in {worker.worker_id for worker in found}
    assert owner(row) in {worker.worker_id for worker in found}


async def test_what_is_not_told_in_time_has_timed_out(database: Database) -> None:
    row = await running(database)
    await give(database, row)
    just = NOW + timedelta(seconds=300 + 30 + 5)
    assert (await end_overdue(database, lambda: 0.5, now=just)).changed == {}
    late = just + timedelta(milliseconds=1)
    assert (await end_overdue(database, lambda: 0.5, now=late)).changed == {
        row.execution_id: ExecutionState.RETRYING
    }
    (end,) = await database.fetch(ENDS)
    assert (end["error"]["type"], end["error"]["message"]) == ("TIMEOUT", NOT_TOLD)
    assert end["worker_id"] == REMOTE


async def test_one_that_is_to_be_cancelled_ends_after_its_grace(database: Database) -> None:
    row = await running(database)
    await give(database, row)
    await cancel(database, DEFAULT_TENANT, [row.execution_id], "enough", NOW)
    late = NOW + timedelta(seconds=30 + 5, milliseconds=1)
    assert (await end_overdue(database, lambda: 0.5, now=late)).changed == {
        row.execution_id: ExecutionState.CANCELLED
    }


async def test_its_end_is_written_in_the_targets_name(database: Database) -> None:
    row = await running(database)
    await give(database, row)
    told = Outcome(row.execution_id, row.fence, ExecutionEvent.SUCCEED, result=1, started_at=NOW)
    assert not (await finish(database, owner(row), [told])).written
    assert (await finish(database, REMOTE, [told])).written
    (end,) = await database.fetch(ENDS)
    assert (end["status"], end["result"], end["worker_id"]) == ("SUCCEEDED", 1, REMOTE)


async def test_it_can_be_read_by_its_tenant_while_somebody_holds_it(database: Database) -> None:
    row = await running(database)
    held = await read_held(database, DEFAULT_TENANT, row.execution_id)
    assert held is not None
    assert (held.fence, held.worker_id, held.claimed_at) == (row.fence, row.worker_id, NOW)
    stranger = await make_tenant(database)
    assert await read_held(database, stranger, row.execution_id) is None
    waiting = await make_execution(database)
    assert await read_held(database, DEFAULT_TENANT, waiting.execution_id) is None


class Forgetful(Database):
    """Does what it is asked, and loses the answer once."""

    loses = True

    async def fetch(self, statement: Statement, *arguments: object) -> list[asyncpg.Record]:
        rows = await super().fetch(statement, *arguments)
        if self.loses:
            self.loses = False
            raise CommitUnknown(self.url, "the answer is lost")
        return rows


async def test_a_hand_over_whose_answer_is_lost_is_written_again(
    database: Database, database_url: str
) -> None:
    row, stale = await running(database), await running(database)
    heard: list[ExecutionState | None] = []
    async with Forgetful(database_url) as line:
        finisher = Finisher(line, owner(row), lambda _, state: heard.append(state), ManualClock())
        finisher.put(HandOver(row.execution_id, row.fence))
        finisher.put(HandOver(stale.execution_id, stale.fence))
        assert finisher.unwritten == 2
        with pytest.raises(CommitUnknown):
            await finisher.run_once()
        assert (finisher.unwritten, heard) == (2, [])
        await finisher.run_once()
    assert (finisher.unwritten, heard) == (0, [ExecutionState.RUNNING, None])


async def test_what_is_held_says_why(database: Database) -> None:
    row = await running(database)
    why = Failure(ErrorType.CONNECTION, "nobody answers")
    held = Outcome(row.execution_id, row.fence, ExecutionEvent.HOLD, failure=why, delay_seconds=9.0)
    assert (await finish(database, owner(row), [held], NOW)).written
    found = await read(database, row)
    assert (found["status"], found["hold"], found["hold_detail"]) == (
        "WAITING",
        "BREAKER",
        "nobody answers",
    )
    assert found["available_at"] == NOW + timedelta(seconds=9)
    assert (found["attempt_number"], found["fence"]) == (0, 1)
    assert await database.fetch(ENDS) == []
