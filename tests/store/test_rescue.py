"""Rescue on a real server: all that the dead hold, nothing that the living hold, each once."""

import asyncio
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from foliot.core.ids import ExecutionId
from foliot.core.model import ErrorType, Failure
from foliot.core.states import ExecutionEvent as Event
from foliot.core.states import ExecutionState as State
from foliot.store.cancelling import cancel
from foliot.store.claiming import ClaimRequest, Look, claim
from foliot.store.database import Database
from foliot.store.finishing import FinishReport, Outcome, finish
from foliot.store.releasing import release_due
from foliot.store.rescuing import (
    RescueReport,
    Verdict,
    apply,
    end_overdue,
    judge_lost,
    list_lost,
    rescue_lost,
)
from foliot.store.statements import statement
from foliot.store.workers import bury_silent
from foliot.testing.database import sql
from foliot.testing.rows import (
    DEFAULT_TENANT,
    NOW,
    ExecutionRow,
    make_execution,
    make_job,
    make_worker,
)
from foliot.testing.running import counts, live_row, make_running, only_attempt

LATER = NOW + timedelta(minutes=1)
LIVE = sql("select * from foliot.executions order by id")
DEFINE = sql("update foliot.job_versions set definition = definition || $2 where job_id = $1")
HOLD = sql("select 1 from foliot.executions where id = $1 for update")
DIE = sql("update foliot.workers set status = 'DEAD' where id = $1")
FORGET = sql("delete from foliot.workers where id = $1")


def middle() -> float:
    return 0.5


async def test_what_the_dead_hold_is_queued_again(database: Database) -> None:
    worker, (began, waited) = await make_running(database, 2, start_by=LATER)
    await make_running(database, 3)
    await database.execute(
        sql("update foliot.workers set started = $2, status = 'DEAD' where id = $1"),
        worker,
        [began.execution_id],
    )
    report = await rescue_lost(database, now=LATER)
    assert report == RescueReport(
        2, {began.execution_id: State.QUEUED, waited.execution_id: State.QUEUED}
    )
    for row, alone in ((began, True), (waited, False)):
        live = await live_row(database, row)
        assert (live["status"], live["worker_id"], live["rank"]) == ("QUEUED", None, None)
        assert (live["attempt_number"], live["fence"]) == (2 if alone else 1, 3)
        assert (live["run_alone"], live["crash_count"]) == (alone, 0)
        assert (live["available_at"], live["start_by"]) == (LATER, None if alone else LATER)
    over = await only_attempt(database, began)
    assert (over["status"], over["final"], over["worker_id"]) == ("FAILED", False, worker)
    assert over["error"]["type"] == "WORKER_LOST"
    assert over["started_at"] == over["claimed_at"]
    assert await counts(database) == (5, 1, 0, 0), "what had not begun was no attempt"


async def test_a_worker_without_a_row_is_dead(database: Database) -> None:
    worker, rows = await make_running(database, 1)
    assert (await rescue_lost(database)).listed == 0
    await database.execute(FORGET, worker)
    assert (await rescue_lost(database)).changed == {rows[0].execution_id: State.QUEUED}
    assert (await live_row(database, rows[0]))["run_alone"], "what it had begun is not known"


async def test_a_silent_worker_is_buried_and_then_rescued_from(database: Database) -> None:
    _, rows = await make_running(database, 1)
    await bury_silent(database, now=NOW + timedelta(seconds=14))
    assert (await rescue_lost(database)).listed == 0
    await bury_silent(database, now=NOW + timedelta(seconds=16))
    assert rows[0].execution_id in (await rescue_lost(database)).changed


async def test_at_its_last_attempt_or_its_last_crash_it_is_a_dead_letter(
    database: Database,
) -> None:
    worker = await make_worker(database, status="DEAD")
    job = await make_job(database)
    await database.execute(
        DEFINE, job.job_id, {"retry_policy": {"max_attempts": 3, "max_crashes": 2}}
    )
    _, (last,) = await make_running(
        database, 1, worker_id=worker, job=job, attempt_number=3, run_alone=True
    )
    _, (poison,) = await make_running(
        database, 1, worker_id=worker, job=job, attempt_number=2, run_alone=True, crash_count=1
    )
    await database.execute(
        sql("update foliot.workers set started = $2 where id = $1"),
        worker,
        [poison.execution_id, last.execution_id],
    )
    report = await rescue_lost(database, now=LATER)
    assert report.changed == dict.fromkeys((last.execution_id, poison.execution_id), State.FAILED)
    letters = await database.fetch(sql("select id, reason from foliot.dead_letters"))
    assert {row["id"]: row["reason"] for row in letters} == {
        last.execution_id: "EXHAUSTED",
        poison.execution_id: "POISON",
    }
    assert (await only_attempt(database, last))["final"]
    assert await counts(database) == (0, 2, 2, 2)


async def test_what_kills_every_worker_before_it_can_tell_ends_as_a_dead_letter(
    database: Database,
) -> None:
    """Nobody ever says that it began: five lost claims are enough to think so."""
    job = await make_job(database)
    await database.execute(DEFINE, job.job_id, {"retry_policy": {"max_crashes": 2}})
    execution = await make_execution(database, job)
    attempts = []
    for round_ in range(9):
        now = NOW + timedelta(seconds=round_)
        worker = await make_worker(database)
        request = ClaimRequest(worker, "default", [job.lane_id], 1, Look.EVERYWHERE)
        (claimed,) = await claim(database, request, now)
        await database.execute(DIE, worker)
        (state,) = (await rescue_lost(database, now=now)).changed.values()
        if state is State.FAILED:
            break
        attempts.append((await live_row(database, execution))["attempt_number"])
        await release_due(database, now=now)
    assert (claimed.fence, attempts) == (8, [0, 0, 0, 0, 0, 1, 2])
    letters = await database.fetch(sql("select reason from foliot.dead_letters"))
    assert [row["reason"] for row in letters] == ["POISON"]


async def test_what_was_asked_to_stop_is_cancelled_by_the_rescue(database: Database) -> None:
    worker, (row,) = await make_running(database, 1)
    await cancel(database, DEFAULT_TENANT, [row.execution_id], "no")
    await database.execute(FORGET, worker)
    assert (await rescue_lost(database)).changed == {row.execution_id: State.CANCELLED}
    assert await counts(database) == (0, 1, 0, 1)


async def test_pages_go_to_the_end(database: Database) -> None:
    for number in (5, 3, 7):
        worker, _ = await make_running(database, number)
        await database.execute(FORGET, worker)
        await make_running(database, 2)
    pages = []
    page = await list_lost(database, 4)
    while page:
        pages.append(page)
        page = await list_lost(database, 4, page[-1])
    assert [len(each) for each in pages] == [4, 4, 4, 3]
    assert len({lost.execution_id for each in pages for lost in each}) == 15
    report = await rescue_lost(database, page_rows=4)
    assert (report.listed, len(report.changed)) == (15, 15)
    assert await counts(database) == (21, 15, 0, 0)


async def test_a_row_that_somebody_holds_is_passed_over(
    database: Database, database_url: str
) -> None:
    worker, rows = await make_running(database, 3)
    await database.execute(FORGET, worker)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(HOLD, rows[1].execution_id)
        report = await rescue_lost(database, page_rows=1)
    assert report.changed.keys() == {rows[0].execution_id, rows[2].execution_id}
    assert (await rescue_lost(database)).changed.keys() == {rows[1].execution_id}


@pytest.mark.parametrize(
    "change",
    [
        "fence = fence + 1",
        "worker_id = gen_random_uuid()",
        "status = 'QUEUED', worker_id = null, rank = null",
    ],
    ids=["claimed anew", "another's", "let go"],
)
async def test_what_moved_on_since_it_was_listed_is_left_alone(
    database: Database, change: str
) -> None:
    worker, rows = await make_running(database, 2)
    await database.execute(FORGET, worker)
    lost = await list_lost(database, 10)
    await database.execute(
        sql(f"update foliot.executions set {change} where id = $1"),  # noqa: S608 - the cases above
        rows[0].execution_id,
    )
    before = await live_row(database, rows[0])
    changed = await apply(database, [judge_lost(each) for each in lost])
    assert changed == {rows[1].execution_id: State.QUEUED}
    assert await live_row(database, rows[0]) == before
    assert await counts(database) == (2, 1, 0, 0)


async def test_a_child_that_died_alone_is_counted_by_its_living_worker(database: Database) -> None:
    worker, (row,) = await make_running(database, 1, run_alone=True, crash_count=1)
    failure = Failure(ErrorType.WORKER_LOST, "its process died")
    verdict = Verdict(row.execution_id, row.fence, worker, Event.LOSE, failure, crash_count=2)
    assert await apply(database, [verdict]) == {row.execution_id: State.QUEUED}
    live = await live_row(database, row)
    assert (live["crash_count"], live["run_alone"]) == (2, True)
    assert await apply(database, [verdict]) == {}


async def test_rescuers_and_a_late_worker_at_once_end_each_attempt_once(
    database: Database, database_url: str
) -> None:
    worker, rows = await make_running(database, 200)
    await database.execute(FORGET, worker)

    async def rescuing() -> set[ExecutionId]:
        async with Database(database_url) as own:
            return set((await rescue_lost(own, page_rows=17)).changed)

    async def finishing(part: list[ExecutionRow]) -> set[ExecutionId]:
        report = FinishReport()
        async with Database(database_url) as own:
            for start in range(0, len(part), 13):
                batch = [
                    Outcome(row.execution_id, row.fence, Event.SUCCEED)
                    for row in part[start : start + 13]
                ]
                report |= await finish(own, worker, batch)
        return set(report.written)

    parts = await asyncio.gather(rescuing(), rescuing(), rescuing(), finishing(rows[::-1]))
    everything = [each for part in parts for each in part]
    assert len(everything) == len(set(everything)) == 200
    # No attempt is in history twice, whoever wrote it.
    live = len(everything) - len(parts[3])
    assert await counts(database) == (live, 200, 0, len(parts[3]))


async def test_a_rescued_execution_can_be_claimed_and_its_old_worker_is_superseded(
    database: Database,
) -> None:
    worker, (row,) = await make_running(database, 1)
    await database.execute(FORGET, worker)
    await rescue_lost(database)
    await database.execute(sql("update foliot.executions set rank = 1"))
    new = await make_worker(database)
    (got,) = await claim(database, ClaimRequest(new, "default", [row.lane_id], 1))
    assert got.fence == 4
    report = await finish(database, worker, [Outcome(row.execution_id, row.fence, Event.SUCCEED)])
    assert report.superseded == {row.execution_id}
    assert (await live_row(database, row))["worker_id"] == new


@pytest.mark.parametrize(
    ("attempt_number", "state", "letters"), [(2, State.RETRYING, 0), (4, State.TIMED_OUT, 1)]
)
async def test_what_runs_past_timeout_grace_and_five_seconds_is_ended(
    database: Database, attempt_number: int, state: State, letters: int
) -> None:
    job = await make_job(database)
    await database.execute(DEFINE, job.job_id, {"timeout_seconds": 60, "cancel_grace_seconds": 10})
    _, (row, fresh) = await make_running(
        database, 2, job=job, claimed_at=NOW, attempt_number=attempt_number
    )
    await database.execute(
        sql("update foliot.executions set claimed_at = $2 where id = $1"),
        fresh.execution_id,
        NOW + timedelta(seconds=5),
    )

    async def at(seconds: float) -> dict[ExecutionId, State]:
        now: datetime = NOW + timedelta(seconds=seconds)
        return (await end_overdue(database, middle, page_rows=1, now=now)).changed

    assert await at(75) == {}
    assert await at(75.5) == {row.execution_id: state}
    over = await only_attempt(database, row)
    assert over["error"]["type"] == "TIMEOUT"
    if state is State.RETRYING:
        wait = (await live_row(database, row))["available_at"] - NOW
        assert wait == timedelta(seconds=75.5 + 2)
    assert (await counts(database))[2] == letters


async def test_what_ignores_its_cancellation_is_ended_after_the_grace(database: Database) -> None:
    _, (row,) = await make_running(database, 1, claimed_at=NOW)
    await cancel(database, DEFAULT_TENANT, [row.execution_id], "no", NOW)
    early = await end_overdue(database, middle, now=NOW + timedelta(seconds=35))
    assert early.listed == 0
    late = await end_overdue(database, middle, now=NOW + timedelta(seconds=36))
    assert late.changed == {row.execution_id: State.CANCELLED}


async def test_a_definition_that_cannot_be_read_has_the_default_timeout(
    database: Database,
) -> None:
    job = await make_job(database)
    await database.execute(
        DEFINE, job.job_id, {"timeout_seconds": "soon", "cancel_grace_seconds": None}
    )
    await make_running(database, 1, job=job, claimed_at=NOW)
    now = NOW + timedelta(seconds=335)
    assert (await end_overdue(database, middle, now=now)).listed == 0
    now += timedelta(seconds=1)
    assert (await end_overdue(database, middle, now=now)).listed == 1


async def test_listing_leaps_over_what_the_living_hold(database: Database) -> None:
    """5,000 rows in living hands cost a step for each hand."""
    for _ in range(5):
        await make_running(database, 1000)
    dead, rows = await make_running(database, 3)
    await database.execute(FORGET, dead)
    await database.execute(sql("analyze foliot.executions"))
    async with database.transaction() as session:
        from_start = (UUID(int=0), UUID(int=0), 100)
        assert len(await session.fetch(LIST_LOST, *from_start)) == len(rows)
        walked = await session.fetch_value(
            sql("select pg_stat_get_xact_tuples_returned('foliot.executions_worker'::regclass)")
        )
    assert walked <= 20


LIST_LOST = statement("executions/list_lost")


REFUSE = """
create function foliot.refuse() returns trigger language plpgsql as $$
begin
  raise exception 'not this one' using errcode = '23514';
end $$;
create trigger refuse before insert on foliot.attempts
   for each row when (new.idempotency_key = 'poison') execute function foliot.refuse();
"""


async def test_one_that_the_database_refuses_keeps_no_other_in_dead_hands(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    job = await make_job(database)
    worker, _ = await make_running(database, 6, job=job, attempt_number=2)
    _, (poison,) = await make_running(
        database, 1, job=job, worker_id=worker, attempt_number=2, idempotency_key="poison"
    )
    started = sql("update foliot.workers set status = 'DEAD', started = $2 where id = $1")
    held = [row["id"] for row in await database.fetch(LIVE)]
    await database.execute(started, worker, held)
    async with database.connection() as session:
        await session.run_script("refuse", REFUSE, timeout_seconds=5)
    report = await rescue_lost(database, now=LATER)
    assert (report.listed, len(report.changed)) == (7, 6)
    assert poison.execution_id not in report.changed
    assert str(poison.execution_id) in caplog.text
