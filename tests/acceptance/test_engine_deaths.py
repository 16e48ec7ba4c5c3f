"""Two schedulers and two workers at full work, and one of each is killed at any moment: the work is
done by the others, and the ledger has no gap."""

import os
import random
import signal
from collections import Counter
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from foliot.testing.commands import FoliotCommand, eventually, is_alive
from foliot.testing.database import sql
from foliot.testing.engine import LONG, Engine, check_every_second

ZOO: Final = Path(__file__).parent / "zoo"
ROUNDS: Final = 6 if LONG else 1
# Another one is tried with FOLIOT_TEST_SEED.
SEED: Final = int(os.environ.get("FOLIOT_TEST_SEED", "1"))
EVERY_SECOND: Final = {
    "type": "CRON",
    "cron_expression": "* * * * * *",
    "overlap_policy": "ALLOW",
    "misfire_policy": "FIRE_ALL",
}
AGAIN_WITHIN: Final = timedelta(seconds=20)
FIRED_WITHIN: Final = timedelta(seconds=3)
HELD: Final = sql(
    "select e.id, e.fence from foliot.executions as e"
    " join foliot.workers as w on w.id = e.worker_id where w.name = $1"
)


class Crowd:
    """Schedulers and workers by name; whoever is killed is replaced in the next round."""

    def __init__(self, engine: Engine, stack: ExitStack) -> None:
        self._engine = engine
        self._stack = stack
        self._number = 0
        self.schedulers: dict[str, FoliotCommand] = {}
        self.workers: dict[str, FoliotCommand] = {}

    def fill(self) -> None:
        while len(self.schedulers) < 2:
            command = self._stack.enter_context(self._engine.scheduler())
            self.schedulers[self._next_name()] = command
        while len(self.workers) < 2:
            name = self._next_name()
            options = ("--name", name, "--concurrency", "20")
            self.workers[name] = self._stack.enter_context(self._engine.worker(*options))
        for command in self.workers.values():
            command.line_with("serves")
        for command in self.schedulers.values():
            command.line_with("runs on")

    def _next_name(self) -> str:
        self._number += 1
        return f"member-{self._number}"


class Deaths:
    """What the killed workers held, and when they died by the database's clock."""

    def __init__(self, engine: Engine, chance: random.Random) -> None:
        self._engine = engine
        self._chance = chance
        self.held: list[tuple[str, int, datetime]] = []

    def kill_a_worker(self, workers: dict[str, FoliotCommand]) -> None:
        name = self._chance.choice(sorted(workers))
        kill(workers.pop(name))
        died_at = self._engine.now()
        held = [(str(row["id"]), row["fence"], died_at) for row in self._engine.ask(HELD, name)]
        assert held, "a worker at full work holds something"
        self.held += held
        ran = {(execution, fence) for execution, fence, _ in held}
        hosts = {
            effect.process
            for effect in self._engine.effects()
            if (effect.execution_id, effect.fence) in ran
        }
        eventually(
            lambda: not any(map(is_alive, hosts)), what="no handler of it runs", within_seconds=5
        )

    def kill_a_scheduler(self, schedulers: dict[str, FoliotCommand]) -> None:
        kill(schedulers.pop(self._chance.choice(sorted(schedulers))))


def kill(command: FoliotCommand) -> None:
    command.send(signal.SIGKILL)
    command.ended()


def give_work(engine: Engine, jobs: list[dict[str, Any]], chance: random.Random) -> list[str]:
    given = []
    for _ in range(12):
        given += [
            engine.visitor.enqueue(job, {"seconds": chance.uniform(0, 4)}) for job in jobs[:2]
        ]
        given.append(engine.visitor.enqueue(jobs[2], {"failures": chance.randint(0, 2)}))
    return given


@pytest.mark.timeout(60 + 60 * ROUNDS)
def test_killed_schedulers_and_workers_are_not_missed(database_url: str, open_folder: Path) -> None:
    chance = random.Random(SEED)
    engine = Engine(database_url, open_folder, ZOO / "noting.py")
    deaths = Deaths(engine, chance)
    given: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(engine.api())
        crowd = Crowd(engine, stack)
        for _ in range(6):
            engine.visitor.make_job("work", EVERY_SECOND, payload={"seconds": 0.3})
        policy = {"initial_delay_seconds": 0.5, "max_attempts": 10}
        jobs = [
            engine.visitor.make_job(name, retry_policy=policy)
            for name in ("work", "work_apart", "stumble")
        ]
        for _ in range(ROUNDS):
            crowd.fill()
            given += give_work(engine, jobs, chance)
            for victim in chance.sample(["worker", "scheduler"], 2):
                engine.until_now(engine.now() + timedelta(seconds=chance.uniform(0, 1.5)))
                if victim == "worker":
                    deaths.kill_a_worker(crowd.workers)
                else:
                    deaths.kill_a_scheduler(crowd.schedulers)
            wait_until_again(engine, deaths)
        engine.visitor.pause_crons()
        engine.until_over()
    check(engine, deaths, given)


def wait_until_again(engine: Engine, deaths: Deaths) -> None:
    """What the dead held has begun again, or was over before they died."""
    left = sql(
        "select count(*) from foliot.executions as e join unnest($1::uuid[], $2::int[])"
        " as held (id, fence) on held.id = e.id and held.fence = e.fence"
    )
    ids, fences = [one for one, _, _ in deaths.held], [fence for _, fence, _ in deaths.held]
    eventually(
        lambda: engine.ask(left, ids, fences)[0][0] == 0,
        what="everything is taken from the dead",
        within_seconds=25,
    )


def check(engine: Engine, deaths: Deaths, given: list[str]) -> None:
    attempts, outcomes = engine.attempts(), engine.outcomes()
    assert {row["status"] for row in outcomes.values()} == {"SUCCEEDED"}
    fired = check_every_second(engine)
    assert set(given) <= outcomes.keys()
    assert sum(fired.values()) + len(given) == len(outcomes)
    by_fence = {(str(row["id"]), row["fence"]): row for row in attempts}
    assert len(by_fence) == len(attempts)
    # What is not known to have begun, for want of a second to say so, goes back as it was.
    held = {(execution, fence) for execution, fence, _ in deaths.held}
    lost = [by_fence[key] for key in held & by_fence.keys()]
    assert {row["error"]["type"] for row in lost} == {"WORKER_LOST"}
    for execution, fence, died_at in deaths.held:
        again = next_attempt(by_fence, execution, fence)
        assert again["claimed_at"] - died_at <= AGAIN_WITHIN
    late = max(
        row["queued_at"] - row["scheduled_time"]
        for row in attempts
        if row["trigger"] == "SCHEDULE" and row["fence"] == 1
    )
    assert late <= FIRED_WITHIN
    check_effects(engine, deaths, outcomes)


def next_attempt(
    by_fence: dict[tuple[str, int], asyncpg.Record], execution: str, fence: int
) -> asyncpg.Record:
    return by_fence[execution, min(f for e, f in by_fence if e == execution and f > fence)]


def check_effects(engine: Engine, deaths: Deaths, outcomes: dict[str, asyncpg.Record]) -> None:
    """Whoever dies between the effect and the word of it does it again, and nobody else."""
    effects = engine.effects()
    begun = Counter((one.execution_id, one.fence) for one in effects if one.what == "begun")
    assert begun.most_common(1)[0][1] == 1, "no attempt was made twice"
    done = Counter(one.execution_id for one in effects if one.what == "done")
    assert done.keys() == outcomes.keys()
    twice = {execution for execution, times in done.items() if times > 1}
    assert twice <= {execution for execution, _, _ in deaths.held}
    for execution, row in outcomes.items():
        assert (execution, row["fence"]) in begun
    assert not any(is_alive(one.process) for one in effects)
