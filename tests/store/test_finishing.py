"""Ends of attempts on a real server: fenced, whole, once, and never at a neighbour's cost."""

from datetime import timedelta
from typing import Any

import pytest

from foliot.core.model import ErrorType, Failure
from foliot.core.retry import DeadLetterReason
from foliot.core.states import ExecutionEvent as Event
from foliot.core.states import ExecutionState as State
from foliot.store.cancelling import Cancellation, cancel
from foliot.store.database import Database
from foliot.store.errors import StatementFailed
from foliot.store.finishing import FinishReport, Outcome, finish
from foliot.testing.database import sql
from foliot.testing.rows import DEFAULT_TENANT, NOW, ExecutionRow, make_worker
from foliot.testing.running import counts, live_row, make_running, only_attempt

LATER = NOW + timedelta(minutes=1)
FAILURE = Failure(ErrorType.HANDLER_ERROR, "it broke", detail="d")
LIVE = sql("select * from foliot.executions where id = $1")
HISTORY = sql("select * from foliot.attempts where id = $1 order by fence")
LETTERS = sql("select * from foliot.dead_letters where id = $1")
SLOW_CROWD = """
create function foliot.slow_crowd() returns trigger language plpgsql as $$
begin
  if (select count(*) from added) > 2 then perform pg_sleep(10); end if;
  return null;
end $$"""
ON_EVERY_CROWD = """
create trigger slow_crowd after insert on foliot.attempts
  referencing new table as added for each statement execute function foliot.slow_crowd()"""
IMPATIENT = """
do $$ begin
  execute format('alter role session_user in database %I set statement_timeout = 250',
                 current_database());
end $$"""
NOTICES = sql("select * from foliot.deliveries where id = $1")


def ended(row: ExecutionRow, event: Event, **values: Any) -> Outcome:  # noqa: ANN401
    return Outcome(row.execution_id, row.fence, event, **values)


async def test_a_mixed_batch_ends_each_as_it_says(database: Database) -> None:
    worker, rows = await make_running(database, 8)
    events = [
        (Event.SUCCEED, State.SUCCEEDED),
        (Event.FAIL, State.FAILED),
        (Event.TIME_OUT, State.TIMED_OUT),
        (Event.CANCEL, State.CANCELLED),
        (Event.RETRY, State.RETRYING),
        (Event.SNOOZE, State.PENDING),
        (Event.HAND_BACK, State.QUEUED),
        (Event.HOLD, State.WAITING),
    ]
    outcomes = [ended(row, event) for row, (event, _) in zip(rows, events, strict=True)]
    report = await finish(database, worker, outcomes[::-1], LATER)
    assert report == FinishReport(
        {row.execution_id: state for row, (_, state) in zip(rows, events, strict=True)}
    )
    for row in rows[:4]:
        over = await only_attempt(database, row)
        assert (over["status"], over["final"]) == (report.written[row.execution_id], True)
        assert (over["fence"], over["attempt_number"], over["worker_id"]) == (3, 2, worker)
        assert over["finished_at"] == LATER
        (notice,) = await database.fetch(NOTICES, row.execution_id)
        assert (notice["status"], notice["fence"]) == (over["status"], 3)
    tried = await only_attempt(database, rows[4])
    assert (tried["status"], tried["final"]) == ("FAILED", False)
    for row in rows[4:]:
        live = await live_row(database, row)
        assert live["status"] == report.written[row.execution_id]
        assert (live["worker_id"], live["rank"], live["claimed_at"]) == (None, None, None)
        assert live["fence"] == 3, "no fence is ever given back"
        assert live["attempt_number"] == (2 if row is rows[4] else 1)
        assert not await database.fetch(NOTICES, row.execution_id)
    assert (await live_row(database, rows[7]))["hold"] == "BREAKER"
    assert await counts(database) == (4, 5, 0, 4)


async def test_delays_count_from_the_database_clock(database: Database) -> None:
    worker, rows = await make_running(database, 4)
    delays = [1.5, 0.0, float("nan"), 1e300]
    report = await finish(
        database,
        worker,
        [
            ended(row, Event.RETRY, delay_seconds=delay)
            for row, delay in zip(rows, delays, strict=True)
        ],
        LATER,
    )
    assert len(report.written) == 4
    waits = [(await live_row(database, row))["available_at"] - LATER for row in rows]
    assert waits[:3] == [timedelta(seconds=1.5), timedelta(0), timedelta(0)]
    assert waits[3] == timedelta(days=366)


async def test_results_errors_and_responses_are_kept(database: Database) -> None:
    worker, (good, bad) = await make_running(database, 2)
    await finish(
        database,
        worker,
        [
            ended(good, Event.SUCCEED, result=[{"a": [1]}], response={"http_status": 200}),
            ended(bad, Event.FAIL, failure=FAILURE, started_at=NOW),
        ],
        LATER,
    )
    kept = await only_attempt(database, good)
    assert (kept["result"], kept["result_truncated"]) == ([{"a": [1]}], False)
    assert kept["response"] == {"http_status": 200}
    failed = await only_attempt(database, bad)
    assert failed["error"] == {"type": "HANDLER_ERROR", "message": "it broke", "detail": "d"}
    assert failed["started_at"] == NOW


@pytest.mark.parametrize(
    "changes",
    [{"worker_id": None}, {"fence": 4}, {"id": None}],
    ids=["another worker's", "another claim's", "gone"],
)
async def test_a_superseded_outcome_changes_nothing_and_is_told(
    database: Database, changes: dict[str, Any]
) -> None:
    worker, (lost, fine) = await make_running(database, 2)
    if "worker_id" in changes:
        changes = {"worker_id": await make_worker(database)}
    if "id" in changes:
        await database.execute(
            sql("delete from foliot.executions where id = $1"), lost.execution_id
        )
    else:
        ((column, value),) = changes.items()
        update = sql(f"update foliot.executions set {column} = $2 where id = $1")  # noqa: S608
        await database.execute(update, lost.execution_id, value)
    before = await database.fetch(LIVE, lost.execution_id)
    outcomes = [
        ended(lost, Event.FAIL, dead_letter=DeadLetterReason.EXHAUSTED, failure=FAILURE),
        ended(fine, Event.SUCCEED),
    ]
    report = await finish(database, worker, outcomes, LATER)
    assert report.superseded == {lost.execution_id}
    assert report.written == {fine.execution_id: State.SUCCEEDED}
    assert await database.fetch(LIVE, lost.execution_id) == before
    for table in (HISTORY, LETTERS, NOTICES):
        assert not await database.fetch(table, lost.execution_id)


@pytest.mark.parametrize("event", [Event.SUCCEED, Event.RETRY, Event.SNOOZE, Event.HAND_BACK])
async def test_what_was_asked_to_stop_is_cancelled_whatever_it_says(
    database: Database, event: Event
) -> None:
    worker, (row,) = await make_running(database, 1)
    asked = await cancel(database, DEFAULT_TENANT, [row.execution_id], "no longer needed", NOW)
    assert asked == {row.execution_id: Cancellation.ASKED}
    report = await finish(database, worker, [ended(row, event, result=1)], LATER)
    assert report.written == {row.execution_id: State.CANCELLED}
    over = await only_attempt(database, row)
    assert (over["status"], over["final"], over["result"]) == ("CANCELLED", True, 1)
    assert over["cancel_requested_at"] == NOW
    assert await counts(database) == (0, 1, 0, 1)


async def test_a_dead_letter_is_written_once_with_what_it_takes_to_replay(
    database: Database,
) -> None:
    worker, rows = await make_running(database, 3)
    await database.execute(
        sql("update foliot.executions set payload = '{\"own\": 1}' where id = $1"),
        rows[1].execution_id,
    )
    reasons = [DeadLetterReason.EXHAUSTED, DeadLetterReason.POISON, None]
    outcomes = [
        ended(row, Event.FAIL, failure=FAILURE, dead_letter=reason)
        for row, reason in zip(rows, reasons, strict=True)
    ]
    for _ in range(2):
        await finish(database, worker, outcomes, LATER)
    letters = [letter for row in rows for letter in await database.fetch(LETTERS, row.execution_id)]
    assert [letter["reason"] for letter in letters] == ["EXHAUSTED", "POISON"]
    assert [letter["payload"] for letter in letters] == [{"job": 1}, {"own": 1}]
    assert {letter["total_attempts"] for letter in letters} == {2}
    assert len({letter["fingerprint"] for letter in letters}) == 1
    assert await counts(database) == (0, 3, 2, 3)


async def test_a_replay_changes_nothing(database: Database) -> None:
    worker, rows = await make_running(database, 4)
    events = (Event.SUCCEED, Event.RETRY, Event.SNOOZE, Event.FAIL)
    outcomes = [
        ended(row, event, dead_letter=DeadLetterReason.EXHAUSTED, failure=FAILURE)
        for row, event in zip(rows, events, strict=True)
    ]
    await finish(database, worker, outcomes, LATER)
    before = await counts(database), await database.fetch(sql("select * from foliot.executions"))
    report = await finish(database, worker, outcomes, LATER + timedelta(seconds=1))
    assert report == FinishReport(superseded=frozenset(row.execution_id for row in rows))
    assert before == (
        await counts(database),
        await database.fetch(sql("select * from foliot.executions")),
    )


async def test_the_first_word_about_an_execution_counts(database: Database) -> None:
    worker, (row,) = await make_running(database, 1)
    twice = [ended(row, Event.SUCCEED, result=1), ended(row, Event.RETRY)]
    report = await finish(database, worker, twice, LATER)
    assert report == FinishReport({row.execution_id: State.SUCCEEDED})
    assert await counts(database) == (0, 1, 0, 1)


async def test_what_began_has_met_its_start_deadline(database: Database) -> None:
    worker, (began, not_begun) = await make_running(database, 2, start_by=LATER)
    outcomes = [ended(began, Event.RETRY, started_at=NOW), ended(not_begun, Event.HAND_BACK)]
    await finish(database, worker, outcomes, LATER)
    assert (await live_row(database, began))["start_by"] is None
    assert (await live_row(database, not_begun))["start_by"] == LATER


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", float("nan"), object(), 2**70, "x" * 300_000])
async def test_an_unstorable_result_is_a_marker_and_harms_no_neighbour(
    database: Database, bad: object
) -> None:
    worker, (odd, fine) = await make_running(database, 2)
    failure = Failure(ErrorType.HANDLER_ERROR, "a\0b\ud800", detail="\0")
    outcomes = [
        ended(odd, Event.SUCCEED, result={"k": bad}, response=bad, failure=failure),
        ended(fine, Event.SUCCEED, result={"k": 1}),
    ]
    report = await finish(database, worker, outcomes, LATER)
    assert len(report.written) == 2
    kept = await only_attempt(database, odd)
    assert kept["result"]["foliot"] in {"unstorable", "truncated"}
    assert (kept["result_truncated"], kept["error"]["type"]) == (True, "HANDLER_ERROR")
    assert (await only_attempt(database, fine))["result"] == {"k": 1}


async def test_what_the_database_refuses_is_found_by_halves(database: Database) -> None:
    """A rule of the database that nobody here knows of: only its offender gets a marker."""
    worker, rows = await make_running(database, 20)
    await database.execute(
        sql(
            "alter table foliot.attempts add constraint odd"
            " check (result is distinct from '\"odd\"' and error is distinct from '\"odd\"')"
        )
    )
    outcomes = [
        ended(row, Event.SUCCEED, result="odd" if n in {3, 17} else n) for n, row in enumerate(rows)
    ]
    report = await finish(database, worker, outcomes, LATER)
    assert len(report.written) == 20
    results = [(await only_attempt(database, row))["result"] for row in rows]
    marker = {"foliot": "unstorable", "reason": "the database refused it"}
    assert results == [marker if n in {3, 17} else n for n in range(20)]


async def test_a_batch_that_takes_too_long_is_written_by_halves(database_url: str) -> None:
    """A server on which more than two rows of history at once take ten seconds."""
    async with Database(database_url) as database:
        worker, rows = await make_running(database, 8)
        await database.execute(sql(SLOW_CROWD))
        await database.execute(sql(ON_EVERY_CROWD))
        await database.execute(sql(IMPATIENT))
    async with Database(database_url) as database:
        outcomes = [ended(row, Event.SUCCEED) for row in rows]
        report = await finish(database, worker, outcomes, LATER)
        assert set(report.written.values()) == {State.SUCCEEDED}
        assert len(report.written) == 8


async def test_what_cannot_be_written_at_all_is_named(database: Database) -> None:
    worker, (odd, fine) = await make_running(database, 2)
    outcomes = [Outcome(odd.execution_id, 2**40, Event.SUCCEED), ended(fine, Event.SUCCEED)]
    report = await finish(database, worker, outcomes, LATER)
    assert report.written == {fine.execution_id: State.SUCCEEDED}
    assert "does not fit" in report.refused[odd.execution_id]


async def test_a_fault_that_is_not_in_the_rows_is_not_sought_in_them(database: Database) -> None:
    worker, rows = await make_running(database, 4)
    await database.execute(sql("drop function foliot.as_attempt"))
    with pytest.raises(StatementFailed) as failed:
        await finish(database, worker, [ended(row, Event.SUCCEED) for row in rows], LATER)
    assert failed.value.sqlstate == "42883"
