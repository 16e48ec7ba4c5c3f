"""The database is gone for longer than a worker may be silent, at full work: afterwards all goes on
as if it had only taken longer."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from foliot.embedded.server import EmbeddedServer
from foliot.runtime.clock import SystemClock
from foliot.store.migrate import migrate
from foliot.testing.commands import eventually
from foliot.testing.database import sql
from foliot.testing.engine import LONG, Engine, check_every_second

ZOO: Final = Path(__file__).parent / "zoo"
OUTAGE_SECONDS: Final = 60 if LONG else 20
# Several looks of a scheduler for the silent, and far less than a worker may be frozen.
LATER_BY: Final = timedelta(seconds=5)
EVERY_SECOND: Final = {"type": "CRON", "cron_expression": "* * * * * *"}
WORKERS: Final = sql("select id, status from foliot.workers where capacity > 0 order by 1")


@pytest.fixture
def postgres(open_folder: Path) -> Iterator[EmbeddedServer]:
    """One of its own, to be stopped. It keeps what it has said, if not the power is lost."""
    server = EmbeddedServer(open_folder / "data", settings={"fsync": "off"})
    asyncio.run(server.start())
    try:
        asyncio.run(migrate(server.url, SystemClock()))
        yield server
    finally:
        asyncio.run(server.stop())


def make_crons(engine: Engine) -> None:
    for _ in range(8):
        policies = {"overlap_policy": "ALLOW", "misfire_policy": "FIRE_ALL"}
        engine.visitor.make_job("work", EVERY_SECOND | policies)
    for misfire in ("FIRE_ONCE", "SKIP"):
        policies = {"overlap_policy": "SKIP", "misfire_policy": misfire}
        engine.visitor.make_job("work", EVERY_SECOND | policies, payload={"seconds": 1.3})


def enqueue_stubbornly(engine: Engine, job: dict[str, Any], key: str) -> Callable[[], bool]:
    """As a client does that knows its key: again and again, until it is told yes."""

    def is_accepted() -> bool:
        body = {"job": job["job_id"], "idempotency_key": key}
        try:
            status, answer, _ = engine.visitor.try_call("POST", "/executions", body)
        except OSError:
            return False
        assert status in {202, 503}, answer
        return status == 202

    return is_accepted


@contextmanager
def an_outage(postgres: EmbeddedServer, seconds: float) -> Iterator[None]:
    """Stopped as by a crash, and started again; the block is what happens just before that."""
    began = time.monotonic()
    postgres.kill()
    asyncio.run(postgres.wait())
    eventually(
        lambda: time.monotonic() - began > seconds,
        what=f"{seconds} seconds",
        within_seconds=seconds + 5,
    )
    yield
    asyncio.run(postgres.start())


@pytest.mark.timeout(240 if LONG else 120)
def test_an_outage_of_the_database_costs_nothing_but_time(
    postgres: EmbeddedServer, open_folder: Path
) -> None:
    engine = Engine(postgres.url, open_folder, ZOO / "noting.py")
    with ExitStack() as stack:
        stack.enter_context(engine.api())
        processes = [stack.enter_context(engine.scheduler()) for _ in range(2)]
        processes += [stack.enter_context(engine.worker("--concurrency", "40")) for _ in range(2)]
        slow = processes[-1]
        make_crons(engine)
        work, apart, stumble = (
            engine.visitor.make_job(name, retry_policy={"initial_delay_seconds": 1})
            for name in ("work", "work_apart", "stumble")
        )
        # Ends before, in the midst and after.
        ends = [{"seconds": OUTAGE_SECONDS * part} for part in (0.05, 0.3, 0.6, 1.2)]
        long = [engine.visitor.enqueue(job, end) for job in (work, apart) for end in ends]
        engine.until_begun(*long)
        for process in processes[2:]:
            process.line_with("serves")
        stumbling = [engine.visitor.enqueue(stumble, {"failures": 2}) for _ in range(20)]
        engine.until_begun(*stumbling)
        before = engine.ask(WORKERS)

        insist = enqueue_stubbornly(engine, work, "after all")
        with an_outage(postgres, OUTAGE_SECONDS):
            assert not insist()
            # It finds its way back later than the schedulers, who might take it for dead.
            slow.send(signal.SIGSTOP)
        back_at = engine.now()
        eventually(insist, what="an enqueue goes through", within_seconds=5)
        engine.until_settled(back_at, within_seconds=10)
        engine.until_now(back_at + LATER_BY)
        slow.send(signal.SIGCONT)
        engine.until_settled(engine.now(), within_seconds=5)
        engine.visitor.pause_crons()
        engine.until_over()

        assert engine.ask(WORKERS) == before, "nobody was taken for dead"
        for process in processes:
            assert "Traceback" not in process.output
    check_what_became_of_it(engine, long, stumbling)


def check_what_became_of_it(engine: Engine, long: list[str], stumbling: list[str]) -> None:
    attempts, outcomes = engine.attempts(), engine.outcomes()
    assert {row["status"] for row in outcomes.values()} == {"SUCCEEDED"}
    assert not [row for row in attempts if row["error"] and row["error"]["type"] == "WORKER_LOST"]
    for execution in long:
        assert (outcomes[execution]["fence"], outcomes[execution]["attempt_number"]) == (1, 1)
    for execution in stumbling:
        made = [row["status"] for row in attempts if str(row["id"]) == execution]
        assert made == ["FAILED", "FAILED", "SUCCEEDED"]
    fired = check_every_second(engine)
    assert sum(fired.values()) + len(long) + len(stumbling) + 1 == len(outcomes)

    effects = engine.effects()
    done = Counter(effect.execution_id for effect in effects if effect.what == "done")
    assert done == Counter(list(outcomes)), "each has had its effect once"
    begun = Counter((one.execution_id, one.fence) for one in effects if one.what == "begun")
    assert begun.most_common(1)[0][1] == 1, "no attempt was made twice"
