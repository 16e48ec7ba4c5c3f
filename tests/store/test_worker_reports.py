"""What attempts say while they run: progress with the live row, lines in the log, both fenced."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
import pytest_asyncio

from foliot.core.ids import TenantId, WorkerId
from foliot.core.states import ExecutionEvent
from foliot.runtime.chance import fresh_id
from foliot.store.database import Database
from foliot.store.finishing import Outcome, finish
from foliot.store.logs import LogCursor, LogFilter, LogLine, append, levels_from, read_page
from foliot.store.progress import Progress, write_progress
from foliot.store.rescuing import WORKER_LOST, Verdict, apply
from foliot.testing.database import sql
from foliot.testing.rows import DEFAULT_TENANT, ExecutionRow, make_executions, make_job
from foliot.testing.running import live_row, make_running
from foliot.testing.worker_bench import Bench, worker_bench
from foliot.worker import logbook
from foliot.worker.logbook import CUT_OFF
from foliot.worker.tasks import LogRecord, LogSource, Succeeded, Task

LINES = sql("select * from foliot.execution_logs order by execution_id, fence, seq")


@pytest_asyncio.fixture
async def bench(database: Database) -> AsyncIterator[Bench]:
    async with worker_bench(database) as made:
        yield made


async def begin_one(bench: Bench) -> Task:
    """One attempt under way, that ends when it is told to."""
    await make_executions(bench.database, await make_job(bench.database), 1)
    bench.runner.answer = lambda _: None
    await bench.work()
    (task,) = bench.runner.tasks
    return task


def line(row: ExecutionRow, seq: int, message: str = "said", level: str = "INFO") -> LogLine:
    at = row.scheduled_time + timedelta(seconds=seq)
    return LogLine(row.execution_id, row.fence, 2, seq, at, level, "log", message)


async def test_progress_is_written_only_by_who_holds_the_row(database: Database) -> None:
    worker, (row, other) = await make_running(database, 2)
    stale = Progress(other.execution_id, other.fence - 1, 50.0, "late")
    good = Progress(row.execution_id, row.fence, float("nan"), "x" * 5000)
    assert await write_progress(database, worker, [replace(good, percent=10**400)]) == 1
    assert (await live_row(database, row))["progress"]["percent"] == 100
    assert await write_progress(database, worker, [stale, good]) == 1
    assert await write_progress(database, WorkerId(fresh_id()), [good]) == 0
    assert await write_progress(database, worker, []) == 0
    written = (await live_row(database, row))["progress"]
    assert written == {"percent": None, "message": "x" * 1000}
    assert (await live_row(database, other))["progress"] is None


async def test_progress_is_kept_with_the_row_while_it_runs(bench: Bench) -> None:
    task = await begin_one(bench)
    bench.runner.reporter.progressed(task, 10.0, "first")
    bench.runner.reporter.progressed(task, 140.0, "half\0way")
    assert await bench.attempts.progress.run_once() == 1
    assert await bench.attempts.progress.run_once() == 0
    (live,) = await bench.live()
    assert live["progress"] == {"percent": 100.0, "message": "half\ufffdway"}


async def test_lines_are_written_in_order_for_the_attempt_that_said_them(bench: Bench) -> None:
    task = await begin_one(bench)
    bench.runner.reporter.logged(
        task,
        [
            LogRecord(0.1, "INFO", LogSource.LOG, "one"),
            LogRecord(0.2, "ERROR", LogSource.STDERR, "t\0o"),
        ],
    )
    assert await bench.attempts.logs.run_once() == 0
    rows = await bench.database.fetch(
        sql("select seq, level, source, message, tenant_id from foliot.execution_logs order by seq")
    )
    assert [tuple(row)[:4] for row in rows] == [
        (1, "INFO", "log", "one"),
        (2, "ERROR", "stderr", "t\ufffdo"),
    ]
    assert {row["tenant_id"] for row in rows} == {DEFAULT_TENANT}


async def test_an_attempt_may_say_so_much_and_no_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logbook, "ATTEMPT_BYTES_MAX", 100)
    task = await begin_one(bench)
    for number in range(30):
        record = LogRecord(number, "INFO", LogSource.STDOUT, f"line {number:04}")
        bench.runner.reporter.logged(task, [record])
    await bench.attempts.logs.run_once()
    messages = [row["message"] for row in await bench.database.fetch(LINES)]
    assert messages == [*(f"line {number:04}" for number in range(11)), CUT_OFF]


async def test_what_waits_for_the_database_is_bounded_and_what_was_dropped_is_said(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logbook, "WAITING_BYTES_MAX", 300)
    task = await begin_one(bench)
    record = LogRecord(0.0, "INFO", LogSource.STDOUT, "x" * 40)
    for _ in range(10):
        bench.runner.reporter.logged(task, [record])
    assert bench.attempts.logs.waiting == 3
    await bench.attempts.logs.run_once()
    bench.runner.reporter.logged(task, [record])
    await bench.attempts.logs.run_once()
    messages = [row["message"] for row in await bench.database.fetch(LINES)]
    assert messages[3].startswith("7 lines were dropped")
    assert len(messages) == 5


async def test_what_was_dropped_at_the_end_of_an_attempt_is_said_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logbook, "WAITING_BYTES_MAX", 300)
    task = await begin_one(bench)
    record = LogRecord(0.0, "INFO", LogSource.STDOUT, "x" * 40)
    bench.runner.reporter.logged(task, [record] * 10)
    bench.runner.end(task.execution_id, Succeeded())
    await bench.settle()
    await bench.attempts.logs.run_once()
    messages = [row["message"] for row in await bench.database.fetch(LINES)]
    assert messages[3:] == ["7 lines were dropped: too many wait to be written"]


async def test_a_long_line_is_shortened(bench: Bench) -> None:
    task = await begin_one(bench)
    record = LogRecord(0.0, "INFO", LogSource.STDOUT, "é" * 20_000)
    bench.runner.reporter.logged(task, [record])
    await bench.attempts.logs.run_once()
    (row,) = await bench.database.fetch(LINES)
    assert row["message"] == "é" * 16_384 + "…"


async def test_lines_come_in_batches_of_a_thousand(bench: Bench) -> None:
    task = await begin_one(bench)
    record = LogRecord(0.0, "INFO", LogSource.STDOUT, "x")
    bench.runner.reporter.logged(task, [record] * 2500)
    assert [await bench.attempts.logs.run_once() for _ in range(4)] == [1500, 500, 0, 0]
    assert len(await bench.database.fetch(LINES)) == 2500


async def test_the_last_lines_of_an_attempt_are_written_after_its_end(bench: Bench) -> None:
    task = await begin_one(bench)
    record = LogRecord(0.0, "INFO", LogSource.LOG, "last words")
    bench.runner.reporter.logged(task, [record])
    bench.runner.end(task.execution_id, Succeeded())
    await bench.settle()
    assert await bench.live() == []
    await bench.attempts.logs.run_once()
    assert len(await bench.database.fetch(LINES)) == 1


async def test_lines_of_others_and_of_superseded_attempts_are_left_out(database: Database) -> None:
    worker, (ours, stale) = await make_running(database, 2)
    _, (other,) = await make_running(database, 1)
    lines = [line(ours, 1), line(replace(stale, fence=2), 1), line(other, 1)]
    assert await append(database, worker, lines) == 1
    (row,) = await database.fetch(LINES)
    assert (row["execution_id"], row["tenant_id"]) == (ours.execution_id, DEFAULT_TENANT)
    assert await append(database, worker, lines) == 0, "the same again adds nothing"


async def test_lines_of_what_was_handed_back_count_until_it_is_claimed_again(
    database: Database,
) -> None:
    worker, (row,) = await make_running(database, 1)
    outcome = Outcome(row.execution_id, row.fence, ExecutionEvent.HAND_BACK)
    await finish(database, worker, [outcome])
    assert await append(database, worker, [line(row, 1)]) == 1
    await database.execute(
        sql("update foliot.executions set fence = fence + 1 where id = $1"), row.execution_id
    )
    assert await append(database, worker, [line(row, 2)]) == 0


async def test_lines_of_what_was_taken_from_the_dead_end_with_the_next_claim(
    database: Database,
) -> None:
    """Whose end others wrote is superseded, though history has it under its worker's name."""
    worker, (row,) = await make_running(database, 1)
    lost = Verdict(row.execution_id, row.fence, worker, ExecutionEvent.LOSE, WORKER_LOST)
    await apply(database, [lost])
    await database.execute(
        sql("update foliot.executions set fence = fence + 1 where id = $1"), row.execution_id
    )
    assert await append(database, worker, [line(row, 1)]) == 0


async def test_lines_of_an_end_long_ago_are_left_out(database: Database) -> None:
    worker, (row,) = await make_running(database, 1)
    outcome = Outcome(row.execution_id, row.fence, ExecutionEvent.SUCCEED)
    await finish(database, worker, [outcome])
    finished = await database.fetch_value(sql("select finished_at from foliot.attempts"))
    late = finished + timedelta(hours=2)
    assert await append(database, worker, [line(row, 1)], late) == 0
    assert await append(database, WorkerId(fresh_id()), [line(row, 1)]) == 0
    assert await append(database, worker, [line(row, 1)]) == 1


async def test_pages_follow_each_other_and_filters_narrow_them(database: Database) -> None:
    worker, (row,) = await make_running(database, 1)
    levels = ("DEBUG", "INFO", "WARNING", "ERROR", "odd")
    lines = [line(row, n, f"message {n} of Under", levels[n % 5]) for n in range(1, 11)]
    assert await append(database, worker, lines) == 10

    async def read(after: LogCursor, wanted: LogFilter, limit: int = 100) -> list[int]:
        page = await read_page(
            database, DEFAULT_TENANT, row.execution_id, after, wanted, limit=limit
        )
        assert page.next == (LogCursor(row.fence, page.lines[-1].seq) if page.lines else after)
        return [found.seq for found in page.lines]

    first = LogCursor()
    assert await read(first, LogFilter(), 4) == [1, 2, 3, 4]
    assert await read(LogCursor(row.fence, 4), LogFilter(), 4) == [5, 6, 7, 8]
    assert await read(LogCursor(row.fence, 10), LogFilter()) == []
    assert await read(first, LogFilter(level="warning")) == [2, 3, 7, 8]
    assert await read(first, LogFilter(search="MESSAGE 1 of under")) == [1]
    assert await read(first, LogFilter(search="100%")) == []
    assert await read(first, LogFilter(attempt_number=2)) == list(range(1, 11))
    assert await read(first, LogFilter(attempt_number=3)) == []
    page = await read_page(database, TenantId(fresh_id()), row.execution_id)
    assert page.lines == ()


@pytest.mark.parametrize(
    ("level", "levels"),
    [(None, None), ("error", ["ERROR", "CRITICAL"]), ("trace", ["TRACE"])],
)
def test_a_level_means_itself_and_what_is_more_serious(
    level: str | None, levels: list[str] | None
) -> None:
    assert levels_from(level) == levels
