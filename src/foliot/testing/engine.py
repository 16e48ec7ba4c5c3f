"""The whole engine as real processes on one database, for tests that watch it from outside.

Jobs are made and asked about over HTTP, as users do; handlers note what they do in a file that no
crash can take back; what the ledger says is read straight from the tables.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final

import asyncpg

from foliot.runtime.chance import random_name
from foliot.runtime.lifeline import Lifeline
from foliot.runtime.service import run
from foliot.store.connecting import connect
from foliot.store.statements import Statement
from foliot.testing.commands import FoliotCommand, clean_environ, eventually, foliot
from foliot.testing.database import sql
from foliot.testing.visitor import Visitor

# Set to 1, tests of the whole engine take the time that its promises name: `make test-long`.
LONG: Final = os.environ.get("FOLIOT_TEST_LONG") == "1"
# Where handlers of tests note what they do; they are told no variable that begins with FOLIOT_.
EFFECTS: Final = "EFFECTS_FILE"
SECOND: Final = timedelta(seconds=1)

_NOW: Final = sql("select clock_timestamp()")
_LIVE: Final = sql(
    "select job_name, status, hold, fence, available_at from foliot.executions limit 50"
)
_ATTEMPTS: Final = sql("select * from foliot.attempts order by scheduled_time, id, fence")
_BEHIND: Final = sql(
    "select count(*) from foliot.jobs"
    " where next_instant is not null and status = 'ACTIVE' and next_instant <= $1"
)
_CRONS: Final = sql(
    "select j.id, j.name, j.created_at, j.last_instant from foliot.jobs as j"
    " join foliot.job_versions as v on v.job_id = j.id and v.version = 1"
    " where v.definition -> 'schedule' ->> 'type' = 'CRON'"
)
_FIRED: Final = sql(
    "select scheduled_time from foliot.executions where job_id = $1 and trigger = 'SCHEDULE'"
    " union all select scheduled_time from foliot.attempts"
    " where job_id = $1 and trigger = 'SCHEDULE' and final"
)
_SKIPPED: Final = sql("select from_instant, to_instant, count from foliot.skips where job_id = $1")


@dataclass(frozen=True, slots=True)
class Effect:
    """A line that an attempt wrote: that it has begun, or that it is about to succeed."""

    execution_id: str
    fence: int
    attempt_number: int
    what: str
    process: int


class Engine:
    """Roles are started as the test wishes; `modules` have the handlers."""

    def __init__(self, url: str, folder: Path, *modules: Path) -> None:
        self.url = url
        self._modules = [str(module) for module in modules]
        self._effects = folder / "effects"
        self._key = random_name() * 2
        self._environ = clean_environ(
            FOLIOT_DATABASE_URL=url, FOLIOT_API_KEY=self._key, **{EFFECTS: str(self._effects)}
        )
        self._visitor: Visitor | None = None

    @property
    def visitor(self) -> Visitor:
        """Somebody who uses the API, which runs."""
        if self._visitor is None:
            raise RuntimeError("the API has not been started")
        return self._visitor

    @contextmanager
    def api(self, **environ: str) -> Iterator[FoliotCommand]:
        with self._foliot("server", "--role", "api", "--port", "0", **environ) as command:
            url = command.line_with("listening on ").rpartition(" ")[2]
            self._visitor = Visitor(url, self._key)
            yield command

    @contextmanager
    def scheduler(self, **environ: str) -> Iterator[FoliotCommand]:
        with self._foliot("server", "--role", "scheduler", **environ) as command:
            yield command

    @contextmanager
    def worker(self, *options: str, **environ: str) -> Iterator[FoliotCommand]:
        with self._foliot("worker", "run", *self._modules, *options, **environ) as command:
            yield command

    @contextmanager
    def _foliot(self, *arguments: str, **environ: str) -> Iterator[FoliotCommand]:
        tie = _lifeline().read_fd
        arguments += ("--lifeline-fd", str(tie))
        with foliot(*arguments, environ=self._environ | environ, pass_fds=[tie]) as command:
            yield command

    def ask(self, query: Statement, *arguments: object) -> list[asyncpg.Record]:
        async def asking() -> list[asyncpg.Record]:
            async with connect(self.url) as session:
                return await session.fetch(query, *arguments)

        return run(asking())

    def now(self) -> datetime:
        """By the database's clock."""
        told: datetime = self.ask(_NOW)[0][0]
        return told

    def until_now(self, moment: datetime) -> None:
        """Until the database's clock shows it."""
        seconds = (moment - self.now()) / SECOND
        eventually(
            lambda: self.now() >= moment, what=f"it is {moment}", within_seconds=seconds + 10
        )

    def effects(self) -> list[Effect]:
        if not self._effects.exists():
            return []
        return [Effect(*json.loads(line)) for line in self._effects.read_text().splitlines()]

    def until_begun(self, *executions: str, within_seconds: float = 20.0) -> None:
        def all_have() -> bool:
            return set(executions) <= {effect.execution_id for effect in self.effects()}

        eventually(all_have, what=f"{executions} have begun", within_seconds=within_seconds)

    def until_settled(self, instant: datetime, within_seconds: float = 30.0) -> None:
        """Every job has fired or skipped its instants up to there."""
        eventually(
            lambda: self.ask(_BEHIND, instant)[0][0] == 0,
            what=f"all instants up to {instant} are settled",
            within_seconds=within_seconds,
        )

    def until_over(self, within_seconds: float = 30.0) -> None:
        """Nothing waits or runs any more."""
        left: list[asyncpg.Record] = []

        def is_over() -> bool:
            left[:] = self.ask(_LIVE)
            return not left

        try:
            eventually(is_over, what="everything is over", within_seconds=within_seconds)
        except AssertionError as error:
            error.add_note("\n".join(map(str, left)))
            raise

    def attempts(self) -> list[asyncpg.Record]:
        return self.ask(_ATTEMPTS)

    def outcomes(self) -> dict[str, asyncpg.Record]:
        """The last attempt of each execution that is over; there must be one."""
        ends = [row for row in self.attempts() if row["final"]]
        by_id = {str(row["id"]): row for row in ends}
        if len(by_id) < len(ends):
            raise AssertionError("an execution has ended twice")
        return by_id


@cache
def _lifeline() -> Lifeline:
    """Of this process: whatever its engines have started leaves with it, even if it is killed."""
    return Lifeline.open()


def check_every_second(engine: Engine) -> dict[str, int]:
    """Each instant of each every-second job, from its making to the last one settled, has exactly
    one execution or is part of exactly one skip. How many executions each job has, by its name."""
    fired: dict[str, int] = {}
    for job in engine.ask(_CRONS):
        instants = Counter(row["scheduled_time"] for row in engine.ask(_FIRED, job["id"]))
        fired[job["name"]] = instants.total()
        for skip in engine.ask(_SKIPPED, job["id"]):
            instants.update(_seconds(skip["from_instant"], skip["to_instant"], skip["count"]))
        first = job["created_at"].replace(microsecond=0) + SECOND
        expected = Counter(_seconds(first, job["last_instant"]))
        if instants != expected:
            missing, surplus = sorted(expected - instants), sorted(instants - expected)
            raise AssertionError(f"{job['name']}: missing {missing}, too many {surplus}")
    return fired


def _seconds(first: datetime, last: datetime, count: int | None = None) -> list[datetime]:
    """Every second from the first to the last, which are so many."""
    seconds = round((last - first) / SECOND) + 1
    if count not in (None, seconds):
        raise AssertionError(f"{count} instants from {first} to {last}")
    return [first + SECOND * step for step in range(seconds)]
