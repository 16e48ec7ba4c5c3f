"""Behind a pooler in transaction mode (`FOLIOT_TEST_POOLER`), told by FOLIOT_DATABASE_POOLER: every
command works, each transaction on another connection of the server. Without one the same holds."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.testing.commands import clean_environ, eventually, foliot, foliot_up, get
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.pooler import is_wanted

OTHERS = 4
LOOKS = 20
ADVICE = "set FOLIOT_DATABASE_POOLER=transaction"
API = ("server", "--role", "api", "--port", "0")


def environ(url: str, pooler: str) -> dict[str, str]:
    return clean_environ(
        FOLIOT_DATABASE_URL=url, FOLIOT_DATABASE_POOLER=pooler, FOLIOT_API_KEY="k" * 16
    )


@asynccontextmanager
async def others_at_work(url: str) -> AsyncIterator[None]:
    """Without them the pooler would need one connection, and everybody would meet it again."""
    options = ConnectionOptions(max_connections=OTHERS, prepare=False)

    async def work(database: Database) -> None:
        while True:
            await database.fetch_value(sql("select pg_sleep(0.02)"))

    async with Database(url, options) as database:
        tasks = [asyncio.create_task(work(database)) for _ in range(OTHERS)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def served_well(url: str) -> None:
    with foliot(*API, environ=environ(url, "transaction")) as command:
        address = command.line_with("listening on ").rpartition(" ")[2]
        eventually(lambda: get(f"{address}/readyz")[0] == 200, what="ready")
        assert {get(f"{address}/readyz")[0] for _ in range(LOOKS)} == {200}
        command.send(signal.SIGTERM)
        assert command.ended() == 0
    assert not [line for line in command.lines if " WARNING " in line or " ERROR " in line]


def not_told(url: str) -> str:
    """What a server says that was told of no pooler, once it is ready or has met one."""
    with foliot(*API, environ=environ(url, "none")) as command:
        return command.line_with(ADVICE if is_wanted() else "database is ready")


async def test_the_server_stays_ready(database_url: str) -> None:
    async with others_at_work(database_url):
        await asyncio.to_thread(served_well, database_url)


async def test_a_server_that_was_not_told_says_what_to_set(database_url: str) -> None:
    async with others_at_work(database_url):
        line = await asyncio.to_thread(not_told, database_url)
    assert "Traceback" not in line


@pytest.mark.parametrize("pooler", ["none", "transaction"])
async def test_a_migration_needs_no_line_of_its_own(server: DatabaseFactory, pooler: str) -> None:
    url = await server.create_empty(pooled=True)

    def migrated() -> None:
        for verb, said in (("migrate", "applied 0001_"), ("status", "the schema is up to date")):
            with foliot("db", verb, environ=environ(url, pooler)) as command:
                assert command.ended() == 0
            assert said in command.output

    async with others_at_work(url):
        await asyncio.to_thread(migrated)


async def test_everything_on_this_machine_runs_behind_it(database_url: str, tmp_path: Path) -> None:
    def run() -> None:
        with foliot_up(tmp_path, environ=environ(database_url, "transaction")) as ready:
            assert ready.is_ready()

    async with others_at_work(database_url):
        await asyncio.to_thread(run)
