"""Roles say how they get on: schedulers on a port of their own, and the API for the whole."""

import asyncio
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from foliot.core.model import Schedule, ScheduleType
from foliot.runtime.listener import listen, url_of
from foliot.store.connecting import connect
from foliot.store.database import Database
from foliot.testing.commands import FoliotCommand, clean_environ, eventually, foliot, get
from foliot.testing.database import sql
from foliot.testing.rows import make_job

NOWHERE = "postgresql://127.0.0.1:1/nowhere"


@contextmanager
def scheduler(url: str, port: str = "0") -> Iterator[FoliotCommand]:
    environ = clean_environ(FOLIOT_DATABASE_URL=url, FOLIOT_METRICS_PORT=port)
    with foliot("server", "--role", "scheduler", environ=environ) as command:
        yield command


def address(command: FoliotCommand) -> str:
    return command.line_with("health and metrics on ").rpartition(" ")[2]


def metrics(url: str) -> str:
    with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:  # noqa: S310 - our own
        return str(answer.read().decode())


def test_a_scheduler_is_ready_and_counts(database_url: str) -> None:
    with scheduler(database_url) as command:
        url = address(command)
        eventually(lambda: get(f"{url}/readyz")[0] == 200, what="ready")
        checks = get(f"{url}/readyz")[1]["checks"]
        assert checks.keys() == {"database", "loops", "instants", "leases"}
        eventually(lambda: "foliot_shards_owned 64.0" in metrics(url), what="all shards")
        command.send(signal.SIGTERM)
        assert command.ended() == 0
        assert "Traceback" not in command.output


def test_a_scheduler_without_a_database_is_alive_and_not_ready() -> None:
    with scheduler(NOWHERE) as command:
        url = address(command)
        assert get(f"{url}/livez")[:2] == (200, {"status": "alive"})
        status, body, _ = get(f"{url}/readyz")
        assert (status, body["status"]) == (503, "not ready")
        command.send(signal.SIGTERM)
        assert command.ended() == 0


def test_a_worker_has_the_port_too(database_url: str) -> None:
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url, FOLIOT_METRICS_PORT="0")
    with foliot("worker", "run", environ=environ) as command:
        url = address(command)
        eventually(lambda: get(f"{url}/readyz")[0] == 200, what="ready")
        assert get(f"{url}/readyz")[1]["checks"].keys() == {"database", "callbacks"}
        assert "foliot_worker_capacity 16.0" in metrics(url)
        command.send(signal.SIGTERM)
        assert command.ended() == 0
        assert "Traceback" not in command.output


def test_without_the_setting_there_is_no_port(database_url: str) -> None:
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url)
    with foliot("server", "--role", "scheduler", environ=environ) as command:
        command.line_with(" runs on ")
        assert "health" not in command.output


def test_a_port_that_is_taken_is_named_with_its_fix(database_url: str) -> None:
    taken = listen("127.0.0.1", 0)
    port = url_of(taken).rpartition(":")[2]
    with scheduler(database_url, port) as command:
        assert command.ended() == 2
        assert "error: FOLIOT_METRICS_PORT: it is in use (choose another, or 0" in command.output
    taken.close()


def test_the_api_is_not_ready_while_nobody_fires_what_is_due(database_url: str) -> None:
    asyncio.run(_make_overdue(database_url))
    key = "a-key-for-the-operator"
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url, FOLIOT_API_KEY=key)
    with foliot("server", "--role", "api", "--port", "0", environ=environ) as command:
        url = command.line_with("listening on ").rpartition(" ")[2]
        able = f"{url}/readyz?exclude=instants"
        eventually(lambda: get(able)[0] == 200, what="able to serve")
        status, body, _ = get(f"{url}/readyz")
        assert status == 503
        assert "the oldest instant has been due for" in body["checks"]["instants"]["detail"]
        with scheduler(database_url):
            eventually(lambda: get(f"{url}/readyz")[0] == 200, what="ready once it is fired")


async def _make_overdue(url: str) -> None:
    at = datetime.now(UTC) - timedelta(minutes=5)
    async with Database(url) as database:
        schedule = Schedule(ScheduleType.ONE_TIME, run_at=at)
        await make_job(database, schedule, next_instant=at)


async def test_what_the_database_lacks_in_safety_is_said_once(database_url: str) -> None:
    """By a process, however many pools it has."""
    async with connect(database_url) as session:
        name = await session.fetch_value(sql("select current_database()::text"))
        script = f"alter role session_user in database {name} reset lock_timeout"
        await session.run_script("reset", script, timeout_seconds=5)
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url)
    with foliot("server", "--role", "scheduler", environ=environ) as command:
        command.line_with(" runs on ")
        assert command.output.count("lock_timeout is off") == 1
