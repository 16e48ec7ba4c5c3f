"""Hints between real processes: who waits is woken, and nobody depends on it.

Workers here wait an hour between two looks while hints come, so what begins was hinted at; where no
hints can come, they look as often as ever, so what begins was found.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from foliot.testing.commands import FoliotCommand, eventually
from foliot.testing.database import sql
from foliot.testing.engine import Engine

ZOO: Final = Path(__file__).parent / "zoo"
HOUR: Final = {"FOLIOT_POLL_SECONDS": "3600"}
# As behind a pooler, without a straight way to the server.
DEAF: Final = {"FOLIOT_DATABASE_POOLER": "transaction"}
# A worker that has looked at its queues within the last second may do so again by itself.
RESTS: Final = sql(
    "select clock_timestamp() - max(query_start) > interval '1 second' from pg_stat_activity"
    " where datname = current_database() and application_name = 'foliot worker'"
    " and query like any(array['%a worker takes its next executions%',"
    " '%lanes that a worker can serve%', '%workers take from the same queues%'])"
)
CUT: Final = sql(
    "select pg_terminate_backend(pid) from pg_stat_activity"
    " where datname = current_database() and application_name = 'foliot worker hints'"
)
LISTENS: Final = sql(
    "select count(*) from pg_stat_activity"
    " where datname = current_database() and application_name = 'foliot worker hints'"
)


@contextmanager
def at_work(engine: Engine, **worker: str) -> Iterator[FoliotCommand]:
    """Everything runs; the worker is what is told."""
    with ExitStack() as stack:
        stack.enter_context(engine.api())
        scheduler = stack.enter_context(engine.scheduler())
        command = stack.enter_context(engine.worker(**worker))
        command.line_with("serves")
        scheduler.line_with("runs on")
        yield command


def until_it_rests(engine: Engine) -> None:
    eventually(lambda: engine.ask(RESTS)[0][0], what="the worker waits for long")


def test_a_worker_that_waits_for_long_begins_what_it_is_told_of(
    database_url: str, tmp_path: Path
) -> None:
    engine = Engine(database_url, tmp_path, ZOO / "noting.py")
    with at_work(engine, **HOUR) as worker:
        worker.line_with("hints are heard")
        # The first of its lane, then more of it: by request, by a schedule, when its time comes.
        job = engine.visitor.make_job("work")
        until_it_rests(engine)
        engine.until_begun(engine.visitor.enqueue(job))
        until_it_rests(engine)
        engine.until_begun(engine.visitor.enqueue(job))
        until_it_rests(engine)
        engine.until_begun(engine.visitor.enqueue(job, delay_seconds=0.5))
        until_it_rests(engine)
        at_once = engine.visitor.make_job("work", {"type": "IMMEDIATE"})
        (run,) = eventually(lambda: engine.visitor.runs(at_once) or None, what="it is fired")
        engine.until_begun(str(run["execution_id"]))


def test_what_was_told_while_nobody_listened_is_made_up_for(
    database_url: str, tmp_path: Path
) -> None:
    engine = Engine(database_url, tmp_path, ZOO / "noting.py")
    with at_work(engine, **HOUR) as worker:
        worker.line_with("hints are heard")
        job = engine.visitor.make_job("work")
        engine.until_begun(engine.visitor.enqueue(job))
        until_it_rests(engine)
        assert engine.ask(CUT)
        engine.until_begun(engine.visitor.enqueue(job))
        worker.line_with("no hints are heard, polling instead")
        eventually(lambda: engine.ask(LISTENS)[0][0] == 1, what="it listens again")
        until_it_rests(engine)
        engine.until_begun(engine.visitor.enqueue(job))


def test_without_hints_everything_begins_by_polling(database_url: str, tmp_path: Path) -> None:
    engine = Engine(database_url, tmp_path, ZOO / "noting.py")
    with at_work(engine, **HOUR, **DEAF) as worker:
        worker.line_with("without FOLIOT_DATABASE_DIRECT_URL no hints come")
        job = engine.visitor.make_job("work")
        engine.until_begun(engine.visitor.enqueue(job))
        engine.until_begun(engine.visitor.enqueue(job, delay_seconds=0.5))
    assert "hints are heard" not in worker.output


def test_behind_a_pooler_hints_come_by_the_straight_way(database_url: str, tmp_path: Path) -> None:
    engine = Engine(database_url, tmp_path, ZOO / "noting.py")
    straight = {"FOLIOT_DATABASE_DIRECT_URL": database_url}
    with at_work(engine, **HOUR, **DEAF, **straight) as worker:
        worker.line_with("hints are heard")
        job = engine.visitor.make_job("work")
        until_it_rests(engine)
        engine.until_begun(engine.visitor.enqueue(job))


def test_what_a_leaving_worker_hands_back_begins_elsewhere(
    database_url: str, tmp_path: Path
) -> None:
    engine = Engine(database_url, tmp_path, ZOO / "noting.py")
    with at_work(engine, **HOUR):
        job = engine.visitor.make_job("work")
        with engine.worker("--concurrency", "1", **HOUR) as second:
            second.line_with("hints are heard")
            runs = [engine.visitor.enqueue(job) for _ in range(20)]
        engine.until_begun(*runs)
