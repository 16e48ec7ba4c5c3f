"""An outage is told once when it begins and once when it ends, however often we look."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from foliot.api.readiness import DatabaseReadiness
from foliot.store.database import Database
from foliot.store.errors import DatabaseUnreachable
from foliot.store.migration_files import packaged_migrations
from foliot.store.statements import Statement


class ScriptedDatabase(Database):
    """Answers each look with the next outcome: None is a good answer, a text why there is none."""

    def __init__(
        self, outcomes: Sequence[str | None], *, writable: bool = True, levels_ahead: int = 0
    ) -> None:
        super().__init__("postgresql://me:hunter2@host/db")
        self._outcomes = list(outcomes)
        self._writable = writable
        self._level = len(packaged_migrations()) + levels_ahead
        self._arrears: tuple[float | None, ...] = (None, None, None)

    async def open(self) -> None:
        return None

    async def close(self, *, within_seconds: float = 0) -> None:  # noqa: ARG002 - closed at once
        return None

    async def fetch(self, statement: Statement, *arguments: object) -> list[Any]:
        assert statement.name
        assert arguments == (None,)
        reason = self._outcomes.pop(0) if self._outcomes else None
        if reason is not None:
            raise DatabaseUnreachable(self.url, reason)
        now = datetime(2026, 1, 1, tzinfo=UTC)
        return [{"now": now, "level": self._level, "writable": self._writable}]

    async def fetch_row(self, statement: Statement, *_: object) -> Any:  # noqa: ANN401
        assert statement.name == "schema/read_arrears"
        return self._arrears


class CountingClock:
    """Sleeping takes no time; after the given number of sleeps it never ends."""

    def __init__(self, sleeps: int) -> None:
        self._left = sleeps
        self.slept: list[float] = []
        self.over = asyncio.Event()

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == self._left:
            self.over.set()
            await asyncio.Event().wait()


async def watch(outcomes: Sequence[str | None]) -> list[float]:
    clock = CountingClock(len(outcomes))
    watching = asyncio.create_task(DatabaseReadiness(ScriptedDatabase(outcomes), clock).watch())
    async with asyncio.timeout(5):
        await clock.over.wait()
    watching.cancel()
    return clock.slept


async def test_an_outage_is_one_line_when_it_begins_and_one_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        await watch([None, None, "gone", "gone", "gone", None, None])
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in said] == ["INFO", "WARNING", "INFO"]
    assert said[1][1] == ("database postgresql://me@host/db is not reachable: gone; trying again")


async def test_a_new_reason_is_a_new_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        await watch(["refused", "refused", "it is starting up", None])
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "INFO"]


async def test_it_looks_again_ever_more_slowly_and_anew_after_each_outage() -> None:
    slept = await watch(["gone"] * 6 + [None, "gone"])
    assert slept == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0, 0.2]


async def test_a_database_that_takes_no_writes_is_not_ready() -> None:
    readiness = DatabaseReadiness(ScriptedDatabase([], writable=False), CountingClock(1))
    checks = await readiness.checks()
    assert not checks["database"].ok
    assert "read-only" in checks["database"].detail


@pytest.mark.parametrize(
    ("levels_ahead", "ok", "words"),
    [(-1, False, "run `foliot db migrate`"), (0, True, "at level"), (1, True, "install a newer")],
)
async def test_a_newer_schema_will_do_and_an_older_will_not(
    levels_ahead: int, ok: bool, words: str
) -> None:
    database = ScriptedDatabase([], levels_ahead=levels_ahead)
    check = (await DatabaseReadiness(database, CountingClock(1)).checks())["schema"]
    assert check.ok is ok
    assert words in check.detail


async def test_a_reason_shows_no_password() -> None:
    readiness = DatabaseReadiness(ScriptedDatabase(["gone"]), CountingClock(1))
    checks = await readiness.checks()
    assert not any(check.ok for check in checks.values())
    assert "hunter2" not in str(checks)


async def test_a_database_that_hangs_is_not_ready_after_a_second() -> None:
    class Hanging(ScriptedDatabase):
        async def open(self) -> None:
            await asyncio.Event().wait()

    readiness = DatabaseReadiness(Hanging([]), CountingClock(1))
    async with asyncio.timeout(3):
        checks = await readiness.checks()
        await readiness.close()
    assert checks["database"].detail.endswith("does not answer within a second")


async def test_what_is_late_is_a_reason_of_its_own() -> None:
    database = ScriptedDatabase([])
    database._arrears = (31.0, -15.0, 60.0)
    checks = await DatabaseReadiness(database, CountingClock(1)).checks()
    assert {name: check.ok for name, check in checks.items()} == {
        "database": True,
        "schema": True,
        "instants": False,
        "leases": True,
        "callbacks": True,
    }
    assert checks["instants"].detail == "the oldest instant has been due for 31 s, 30 s at the most"


async def test_what_is_late_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    database, clock = ScriptedDatabase([]), CountingClock(3)
    database._arrears = (31.0, None, None)
    with caplog.at_level(logging.INFO):
        watching = asyncio.create_task(DatabaseReadiness(database, clock).watch())
        async with asyncio.timeout(5):
            await clock.over.wait()
        watching.cancel()
    assert [record.levelname for record in caplog.records] == ["INFO"]
