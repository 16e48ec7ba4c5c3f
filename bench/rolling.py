"""Every process is replaced, one after another, while it all goes on: what does anybody notice?

    python -m bench.rolling --crons 100

Two schedulers, two workers, two APIs. Cron jobs fire every second, and somebody enqueues all the
time, at whichever API answers. Each process in turn is told to leave, and its successor started
once it is gone. Afterwards: every instant has exactly one execution, every enqueue that was
answered has run once, and how late the latest was.
"""

import argparse
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPException
from typing import Final
from uuid import uuid4

import uvloop

from bench.lateness import Lateness, read_lateness
from bench.nodes import HANDLERS
from bench.servers import load_average, migrated_apart, unlimited
from bench.telling import conclude, run, say
from foliot.testing.commands import FoliotCommand
from foliot.testing.database import sql
from foliot.testing.engine import SECOND, Engine, check_every_second
from foliot.testing.visitor import Body, Visitor

EACH: Final = 2
STEADY_SECONDS: Final = 4.0
SETTLE_SECONDS: Final = 1.0
AGAIN_SECONDS: Final = 0.02
EVERY_SECOND: Final = {
    "type": "CRON",
    "cron_expression": "* * * * * *",
    "overlap_policy": "ALLOW",
    "misfire_policy": "FIRE_ALL",
}
READY_WORDS: Final = {"scheduler": "runs on", "worker": "serves", "api": "listening on "}
SKIPPED: Final = sql("select coalesce(sum(count), 0)::integer from foliot.skips")
RUNS: Final = sql("select id, count(*) filter (where final) from foliot.attempts group by id")


class Client(threading.Thread):
    """Enqueues one after another; an API that does not answer is passed over for the next."""

    def __init__(self, apis: dict[int, Visitor], job: Body) -> None:
        super().__init__(name="client", daemon=True)
        self._apis = apis
        self._job = job
        self._enough = threading.Event()
        self.accepted: list[str] = []
        self.passed_over = 0

    def run(self) -> None:
        while not self._enough.is_set():
            # The key is what makes it safe to ask another after no answer.
            body = {"job": self._job["job_id"], "idempotency_key": str(uuid4())}
            while not self._is_accepted(body) and not self._enough.wait(AGAIN_SECONDS):
                self.passed_over += 1

    def finish(self) -> None:
        self._enough.set()
        self.join()

    def _is_accepted(self, body: Body) -> bool:
        turn = (len(self.accepted) + self.passed_over) % EACH
        try:
            status, answer, _ = self._apis[turn].try_call("POST", "/executions", body)
        except (OSError, HTTPException):
            return False
        if status != 202:
            return False
        self.accepted.append(answer["execution_id"])
        return True


@dataclass
class Fleet:
    """The processes by role and number, each to be replaced by one like it."""

    engine: Engine
    stack: ExitStack
    nodes: dict[tuple[str, int], FoliotCommand] = field(default_factory=dict)
    apis: dict[int, Visitor] = field(default_factory=dict)

    def start(self, role: str, number: int) -> None:
        starts: dict[str, Callable[[], AbstractContextManager[FoliotCommand]]] = {
            "scheduler": self.engine.scheduler,
            "worker": lambda: self.engine.worker("--concurrency", "200"),
            "api": self.engine.api,
        }
        node = self.stack.enter_context(starts[role]())
        node.line_with(READY_WORDS[role])
        self.nodes[role, number] = node
        if role == "api":
            self.apis[number] = self.engine.visitor

    def replace(self, role: str, number: int) -> None:
        began = time.monotonic()
        node = self.nodes[role, number]
        node.stop()
        gone = time.monotonic()
        self.start(role, number)
        ready = time.monotonic()
        say(f"{role} {number}: gone after {gone - began:.1f} s, ready {ready - gone:.1f} s later")


def roll(engine: Engine, crons: int, steady_seconds: float) -> tuple[Client, int]:
    """The client, and how many processes were replaced."""
    with ExitStack() as stack:
        fleet = Fleet(engine, stack)
        members = [(role, number) for role in READY_WORDS for number in range(EACH)]
        for role, number in members:
            fleet.start(role, number)
        for _ in range(crons):
            engine.visitor.make_job("tell_time", EVERY_SECOND)
        client = Client(fleet.apis, engine.visitor.make_job("tell_time"))
        client.start()
        time.sleep(steady_seconds)
        for role, number in members:
            fleet.replace(role, number)
            time.sleep(SETTLE_SECONDS)
        time.sleep(steady_seconds)
        client.finish()
        engine.visitor.pause_crons()
        engine.until_over()
    return client, len(members)


def count_gaps(engine: Engine) -> int:
    try:
        fired = check_every_second(engine)
    except AssertionError as gap:
        say(str(gap))
        return 1
    say(f"{sum(fired.values()):,} instants of {len(fired)} jobs, each once")
    return 0


def measure(crons: int, steady_seconds: float) -> dict[str, float]:
    with migrated_apart() as server:
        engine = Engine(server.url, server.home, HANDLERS)
        began = engine.now()
        client, replaced = roll(engine, crons, steady_seconds)
        late = uvloop.run(lateness(server.url, began, engine.now()))
        runs = {str(row[0]): row[1] for row in engine.ask(RUNS)}
        return {
            "replaced": replaced,
            "gaps": count_gaps(engine),
            "skipped": engine.ask(SKIPPED)[0][0],
            "instants": late.number,
            "early": late.early,
            **late.figures(),
            "enqueues": len(client.accepted),
            "passed_over": client.passed_over,
            "lost": sum(runs.get(each, 0) != 1 for each in client.accepted),
        }


async def lateness(url: str, low: datetime, high: datetime) -> Lateness:
    async with unlimited(url) as db:
        return await read_lateness(db, low, high + SECOND)


def main() -> int:
    parser = argparse.ArgumentParser(description="a rolling restart of every role under load")
    parser.add_argument("--crons", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="10 jobs: does it work?")
    told = parser.parse_args()
    say(f"load before {load_average()}")
    crons, steady = (10, 1.0) if told.quick else (told.crons, STEADY_SECONDS)
    return conclude("rolling", measure(crons, steady))


if __name__ == "__main__":
    run(main)
