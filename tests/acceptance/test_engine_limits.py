"""Limits on the whole engine: real schedulers and workers, and workers killed at any moment.

What ran when is read from the history, by the database's clock: from the claim to the end, which
for a worker that was killed is when its executions were taken from it.
"""

import os
import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from itertools import count, islice
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from foliot.testing.commands import FoliotCommand, eventually
from foliot.testing.database import sql
from foliot.testing.engine import LONG, Engine
from foliot.testing.spans import Span, most_at_once, most_within

ZOO: Final = Path(__file__).parent / "zoo"
WORKERS: Final = 8 if LONG else 3
KILLS: Final = 12 if LONG else 2
SCHEDULERS: Final = 4 if LONG else 2
# Another one is tried with FOLIOT_TEST_SEED.
SEED: Final = int(os.environ.get("FOLIOT_TEST_SEED", "1"))
STARTS: Final = sql("select at, started from foliot.rate_starts order by at")
RUNNING: Final = sql("select count(*) from foliot.executions where status = 'RUNNING'")
BUSY: Final = sql(
    "select distinct w.name from foliot.executions e join foliot.workers w on w.id = e.worker_id"
    " where w.name = any($1)"
)
HELD: Final = sql(
    "select from foliot.executions e join foliot.workers w on w.id = e.worker_id where w.name = $1"
)
RETRY: Final = {"initial_delay_seconds": 0.1, "max_attempts": 10, "max_crashes": 10}


@pytest.fixture
def engine(database_url: str, open_folder: Path) -> Iterator[Engine]:
    engine = Engine(database_url, open_folder, ZOO / "noting.py")
    with engine.api():
        yield engine


def spans(attempts: Sequence[asyncpg.Record], *names: str) -> list[Span]:
    return [(row["claimed_at"], row["finished_at"]) for row in attempts if row["job_name"] in names]


class Staff:
    """Workers by name; whoever is killed is replaced."""

    def __init__(self, engine: Engine, stack: ExitStack) -> None:
        self._engine, self._stack = engine, stack
        self._names = (f"worker-{number}" for number in count(1))
        self.workers: dict[str, FoliotCommand] = {}
        self.fill()

    def fill(self) -> None:
        new = {
            name: self._stack.enter_context(
                self._engine.worker("--name", name, "--concurrency", "10")
            )
            for name in islice(self._names, WORKERS - len(self.workers))
        }
        for command in new.values():
            command.line_with("serves")
        self.workers |= new

    def kill_one(self, chance: random.Random) -> int:
        """One that holds something: how many."""

        def busy() -> list[str] | None:
            found = self._engine.ask(BUSY, list(self.workers))
            return sorted(row["name"] for row in found) or None

        name = chance.choice(eventually(busy, what="somebody works", within_seconds=60))
        victim = self.workers.pop(name)
        victim.send(signal.SIGKILL)
        victim.ended()
        return len(self._engine.ask(HELD, name))


@pytest.mark.timeout(120 + 60 * KILLS)
def test_a_limit_of_three_is_never_four_and_a_rate_is_kept_whoever_is_killed(
    engine: Engine,
) -> None:
    chance = random.Random(SEED)
    for name, limit, number in (
        ("limited", {"concurrency": {"limit": 3}}, 30),
        ("keyed", {"concurrency": {"key": "k${payload.seconds}", "limit": 3}}, 30),
        ("rated", {"rate_limit": {"count": 5, "period_seconds": 2}}, 10),
    ):
        job = engine.visitor.make_job("work", name=name, retry_policy=RETRY, **limit)
        wanted = [{"job": job["job_id"], "payload": {"seconds": 0.2}}] * (number * KILLS)
        engine.visitor.call("POST", "/executions/bulk", {"executions": wanted})
    with ExitStack() as stack:
        for _ in range(SCHEDULERS):
            stack.enter_context(engine.scheduler())
        staff = Staff(engine, stack)
        lost = 0
        while lost < KILLS:
            lost += staff.kill_one(chance)
            staff.fill()
        engine.until_over(within_seconds=60 + 10 * KILLS)
    attempts = engine.attempts()
    assert {row["status"] for row in engine.outcomes().values()} == {"SUCCEEDED"}
    assert most_at_once(spans(attempts, "limited")) == 3
    assert most_at_once(spans(attempts, "keyed")) == 3
    starts = engine.ask(STARTS)
    assert sum(row["started"] for row in starts) >= 10 * KILLS
    assert most_within(starts, timedelta(seconds=2)) <= 5


def test_a_queues_limit_pause_and_lanes_on_the_real_engine(engine: Engine) -> None:
    """A limit of a queue over two workers; a paused queue goes on at once; what needs a label or a
    region waits for the worker that has it, and keeps nobody waiting."""
    plain = engine.visitor.make_job("work", name="plain", retry_policy=RETRY)
    gpu = engine.visitor.make_job("work", name="gpu", requires=["gpu"])
    far = engine.visitor.make_job("work", name="far", region="eu")
    engine.visitor.call("PATCH", "/queues/default", {"concurrency_limit": 2})
    first = [engine.visitor.enqueue(job, {"seconds": 0.05}) for job in (gpu, far)]
    many = [engine.visitor.enqueue(plain, {"seconds": 0.05}) for _ in range(20)]
    with engine.scheduler(), engine.worker(), engine.worker():
        for execution in many:
            engine.visitor.until(execution, "SUCCEEDED")
        for execution in first:
            assert engine.visitor.execution(execution)["status"] == "QUEUED"
        queue = engine.visitor.call("GET", "/queues/default")
        assert (queue["depth"], queue["running"]) == (2, 0)
        with engine.worker("--labels", "gpu,big"), engine.worker("--region", "eu"):
            for execution in first:
                engine.visitor.until(execution, "SUCCEEDED")
        assert most_at_once(spans(engine.attempts(), "plain", "gpu", "far")) == 2
        engine.visitor.call("POST", "/queues/default/pause", {"note": "a look inside"})
        held = engine.visitor.enqueue(plain)
        engine.until_now(engine.now() + timedelta(seconds=0.6))
        assert engine.visitor.execution(held)["status"] == "QUEUED"
        engine.visitor.call("POST", "/queues/default/resume")
        resumed_at = engine.now()
        engine.visitor.until(held, "SUCCEEDED")
        (last,) = [row for row in engine.attempts() if str(row["id"]) == held]
        assert last["claimed_at"] - resumed_at < timedelta(seconds=1)


def test_a_full_tenant_and_a_full_key_keep_nobody_waiting(engine: Engine) -> None:
    """Their executions are the more urgent and came first."""
    full = engine.visitor.make_job("work", name="full", concurrency={"limit": 1}, priority=1)
    free = engine.visitor.make_job("work", name="free", priority=10)
    blocker = engine.visitor.enqueue(full, {"seconds": 60})
    wanted = [{"job": full["job_id"], "payload": {"seconds": 60}}] * 500
    engine.visitor.call("POST", "/executions/bulk", {"executions": wanted})
    with engine.scheduler(), engine.worker("--concurrency", "4"):
        engine.visitor.until(blocker, "RUNNING")
        for _ in range(3):
            engine.visitor.until(engine.visitor.enqueue(free), "SUCCEEDED", within_seconds=5)
        assert engine.ask(RUNNING)[0][0] == 1
        engine.visitor.call("DELETE", f"/jobs/{full['job_id']}")
        engine.visitor.call("POST", f"/executions/{blocker}/cancel")
        engine.visitor.until(blocker, "CANCELLED")
