"""Machines whose clocks are five minutes off, either way: only the database's clock decides, so
nothing is early, nothing is missed, and nobody is taken for dead."""

from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from foliot.testing.database import sql
from foliot.testing.engine import LONG, SECOND, Engine, check_every_second
from foliot.testing.wrong_clock import LIBRARY, clock_off_by

ZOO: Final = Path(__file__).parent / "zoo"
WATCHED_SECONDS: Final = 60 if LONG else 18  # longer than a worker may be silent
EVERY_SECOND: Final = {
    "type": "CRON",
    "cron_expression": "* * * * * *",
    "overlap_policy": "ALLOW",
    "misfire_policy": "FIRE_ALL",
}
WORKERS: Final = sql("select status from foliot.workers where capacity > 0")
EARLY: Final = sql("""
select scheduled_time, clock_timestamp() as now from foliot.executions
 where trigger = 'SCHEDULE' and scheduled_time > clock_timestamp() limit 1""")

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason="needs libfaketime (apt-get install faketime)"
)


@pytest.mark.parametrize("off", [300, -300] if LONG else [300])
@pytest.mark.timeout(60 + 2 * WATCHED_SECONDS)
def test_wrong_clocks_change_nothing(off: int, database_url: str, open_folder: Path) -> None:
    """Of each role one is early and one is late; of the API there is one."""
    engine = Engine(database_url, open_folder, ZOO / "noting.py")
    with ExitStack() as stack:
        stack.enter_context(engine.api(**clock_off_by(off)))
        commands = []
        for seconds in (off, -off):
            wrong = clock_off_by(seconds)
            commands.append(stack.enter_context(engine.scheduler(**wrong)))
            check_that_it_is_wrong(commands[-1].line_with("runs on"), engine, seconds)
            commands.append(stack.enter_context(engine.worker(**wrong)))
            check_that_it_is_wrong(commands[-1].line_with("serves"), engine, seconds)
        visitor = engine.visitor
        for _ in range(5):
            visitor.make_job("work", EVERY_SECOND)
        delayed = visitor.make_job("work_apart", {"type": "DELAYED", "delay_seconds": 2})
        retrying = visitor.make_job(
            "stumble", retry_policy={"initial_delay_seconds": 1.5, "multiplier": 1, "jitter": 0}
        )
        endless = visitor.make_job(
            "hang", timeout_seconds=2, cancel_grace_seconds=1, retry_policy={"max_attempts": 1}
        )
        asked_at = engine.now()
        ids = {
            "stumbling": visitor.enqueue(retrying, {"failures": 2}),
            "endless": visitor.enqueue(endless),
            "later": visitor.enqueue(retrying, {"failures": 0}, delay_seconds=3),
        }
        # A worker or a shard that is judged by a wrong clock is lost by then.
        engine.until_settled(asked_at + SECOND * WATCHED_SECONDS, WATCHED_SECONDS + 20)
        assert not engine.ask(EARLY), "fired before its time"
        visitor.pause_crons()
        engine.until_over()
        assert [row["status"] for row in engine.ask(WORKERS)] == ["ACTIVE"] * 2
        shown = {name: visitor.execution(execution)["status"] for name, execution in ids.items()}
        assert shown == dict.fromkeys(ids, "SUCCEEDED") | {"endless": "TIMED_OUT"}
        (run,) = visitor.runs(delayed)
        assert run["status"] == "SUCCEEDED", run["error"]
        for command in commands:
            assert "Traceback" not in command.output
    check(engine, ids)


def check_that_it_is_wrong(line: str, engine: Engine, seconds: int) -> None:
    """Of a test whose clocks are right nothing could be learnt."""
    off = (datetime.fromisoformat(line.split(maxsplit=1)[0]) - engine.now()) / SECOND
    assert abs(off - seconds) < 30


def check(engine: Engine, ids: dict[str, str]) -> None:
    check_every_second(engine)
    attempts, outcomes = engine.attempts(), engine.outcomes()
    for row in attempts:
        assert row["scheduled_time"] <= row["available_at"] <= row["claimed_at"], row
        assert row["claimed_at"] <= row["started_at"] <= row["finished_at"], row
        assert row["queued_at"] - row["available_at"] < timedelta(seconds=1), row
        assert row["finished_at"] - row["claimed_at"] < timedelta(seconds=4), row
    ended_badly = [str(row["id"]) for row in outcomes.values() if row["status"] != "SUCCEEDED"]
    assert ended_badly == [ids["endless"]]
    assert outcomes[ids["endless"]]["status"] == "TIMED_OUT"
    stumbling = [row for row in attempts if str(row["id"]) == ids["stumbling"]]
    for failed, again in pairwise(stumbling):
        assert 1.4 * SECOND < again["claimed_at"] - failed["finished_at"] < 3 * SECOND
