"""Ends of attempts that others interfere with: a lost answer, a cancel, another finish."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from foliot.core.ids import ExecutionId
from foliot.core.model import ErrorType, Failure
from foliot.core.retry import DeadLetterReason
from foliot.core.states import ExecutionEvent as Event
from foliot.core.states import ExecutionState as State
from foliot.store.cancelling import Cancellation, cancel
from foliot.store.database import Database
from foliot.store.errors import TransactionConflict
from foliot.store.finishing import FinishReport, Outcome, finish, settle
from foliot.store.statements import statement
from foliot.testing.database import sql
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import DEFAULT_TENANT, NOW, ExecutionRow, make_worker
from foliot.testing.running import counts, make_running, until_blocked

LATER = NOW + timedelta(minutes=1)
FAILURE = Failure(ErrorType.HANDLER_ERROR, "it broke", detail="d")


def ended(row: ExecutionRow, event: Event, **values: Any) -> Outcome:  # noqa: ANN401
    return Outcome(row.execution_id, row.fence, event, **values)


@pytest.mark.parametrize("delivered", [True, False], ids=["committed", "never arrived"])
async def test_after_an_unknown_commit_each_is_looked_up_and_written_once(
    database: Database, database_url: str, delivered: bool
) -> None:
    worker, rows = await make_running(database, 6)
    events = (Event.SUCCEED, Event.RETRY, Event.SNOOZE, Event.HAND_BACK, Event.FAIL, Event.HOLD)
    outcomes = [
        ended(row, event, result="needle", dead_letter=DeadLetterReason.EXHAUSTED, failure=FAILURE)
        for row, event in zip(rows, events, strict=True)
    ]
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        proxy.cut_at(b"needle", deliver=delivered)
        report = await finish(far, worker, outcomes)
    states = (
        State.SUCCEEDED,
        State.RETRYING,
        State.PENDING,
        State.QUEUED,
        State.FAILED,
        State.WAITING,
    )
    expected = {row.execution_id: state for row, state in zip(rows, states, strict=True)}
    # What was given back is known by where it stands now.
    assert report == FinishReport(expected)
    assert await counts(database) == (4, 3, 1, 2)


async def test_what_another_claim_did_meanwhile_is_not_ours(database: Database) -> None:
    worker, rows = await make_running(database, 4)
    other = await make_worker(database)
    held, claimed, rescued, gone = rows
    await database.execute(
        sql("update foliot.executions set fence = 4, worker_id = $2 where id = $1"),
        claimed.execution_id,
        other,
    )
    # Rescued as lost: its attempt is in history, and it waits for the next.
    await finish(database, worker, [ended(rescued, Event.RETRY)])
    await database.execute(sql("delete from foliot.executions where id = $1"), gone.execution_id)
    # A last failure is not that one, although both are FAILED in history.
    report = await settle(database, worker, [ended(row, Event.FAIL) for row in rows])
    assert report.written == {held.execution_id: State.FAILED}
    assert report.superseded == {row.execution_id for row in (claimed, rescued, gone)}


async def test_a_late_success_that_became_cancelled_is_known_as_that(database: Database) -> None:
    worker, (row,) = await make_running(database, 1)
    await cancel(database, DEFAULT_TENANT, [row.execution_id], "no")
    outcomes = [ended(row, Event.SUCCEED)]
    await finish(database, worker, outcomes)
    report = await settle(database, worker, outcomes)
    assert report.written == {row.execution_id: State.CANCELLED}


async def test_a_finish_that_waits_for_a_cancel_sees_it(
    database: Database, database_url: str
) -> None:
    """The cancel holds the row when the finish comes: the row ends, once, as CANCELLED."""
    worker, rows = await make_running(database, 3)
    ids = [row.execution_id for row in rows]
    async with Database(database_url) as other, other.transaction() as session:
        await session.fetch(statement("executions/cancel"), DEFAULT_TENANT, ids, {}, None)
        events = (Event.SUCCEED, Event.RETRY, Event.HAND_BACK)
        outcomes = [ended(row, event) for row, event in zip(rows, events, strict=True)]
        waiting = asyncio.create_task(finish(database, worker, outcomes))
        await until_blocked(session, waiting)
    assert (await waiting).written == dict.fromkeys(ids, State.CANCELLED)
    assert await counts(database) == (0, 3, 0, 3)


@pytest.mark.parametrize("step", [1, -1])
async def test_rows_are_locked_in_one_order_whatever_the_order_of_the_batch(
    database: Database, database_url: str, step: int
) -> None:
    """Or two batches would wait for each other. The first row is held: no other is locked yet."""
    worker, rows = await make_running(database, 5)
    ordered = sorted(rows, key=lambda row: row.execution_id)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(LIVE_LOCK, ordered[0].execution_id)
        batch = [ended(row, Event.SUCCEED) for row in ordered[::step]]
        waiting = asyncio.create_task(finish(database, worker, batch))
        await until_blocked(session)
        assert len(await session.fetch(FREE)) == 5
    assert len((await waiting).written) == 5


async def test_finishes_and_cancels_at_once_end_each_exactly_once(
    database: Database, database_url: str
) -> None:
    worker, rows = await make_running(database, 300)
    ids = [row.execution_id for row in rows]

    async def ending(part: Sequence[ExecutionRow]) -> FinishReport:
        async with Database(database_url) as own:
            report = FinishReport()
            for start in range(0, len(part), 20):
                batch = [ended(row, Event.SUCCEED) for row in part[start : start + 20]]
                report |= await finish(own, worker, batch)
            return report

    async def cancelling(part: Sequence[ExecutionId]) -> dict[ExecutionId, Cancellation]:
        async with Database(database_url) as own:
            found: dict[ExecutionId, Cancellation] = {}
            for start in range(0, len(part), 20):
                found |= await cancel(own, DEFAULT_TENANT, part[start : start + 20], "no")
            return found

    first, second, asked, again = await asyncio.gather(
        ending(rows[::-1]), ending(rows), cancelling(ids), cancelling(ids[::-1])
    )
    assert not first.written.keys() & second.written.keys()
    written = {**first.written, **second.written}
    assert written.keys() == set(ids)
    for execution_id in ids:
        was_asked = Cancellation.ASKED in {asked[execution_id], again[execution_id]}
        assert written[execution_id] == (State.CANCELLED if was_asked else State.SUCCEEDED)
    assert await counts(database) == (0, 300, 0, 300)


async def test_a_batch_touches_no_row_but_its_own(database: Database) -> None:
    """Statistics of an empty table, then 5,000 rows: still a walk along the batch."""
    await database.execute(sql("analyze foliot.executions"))
    worker, rows = await make_running(database, 5_000)
    touched = sql(
        "select pg_stat_get_xact_tuples_returned('foliot.executions'::regclass) as scanned,"
        " pg_stat_get_xact_tuples_returned('foliot.executions_pkey'::regclass) as walked"
    )
    finishing = statement("executions/finish")
    async with database.transaction() as session:
        for turn in range(1, 8):
            batch = rows[turn * 50 : turn * 50 + 50]
            none = [None] * 50
            await session.fetch(
                finishing,
                worker,
                sorted(row.execution_id for row in batch),
                [3] * 50,
                ["SUCCEED", "RETRY"] * 25,
                none,
                [False] * 50,
                *[none] * 6,
                LATER,
            )
            row = await session.fetch_row(touched)
            assert row is not None
            assert (row["scanned"] or 0) == 0
            assert row["walked"] <= turn * 150


async def test_a_row_that_somebody_holds_delays_its_batch_and_loses_nothing(
    database: Database, database_url: str
) -> None:
    worker, rows = await make_running(database, 2)
    outcomes = [ended(row, Event.SUCCEED) for row in rows]
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(LIVE_LOCK, rows[0].execution_id)
        with pytest.raises(TransactionConflict):
            await finish(database, worker, outcomes)
    assert len((await finish(database, worker, outcomes)).written) == 2


LIVE_LOCK = sql("select 1 from foliot.executions where id = $1 for update")
FREE = sql("select 1 from foliot.executions for update skip locked")
