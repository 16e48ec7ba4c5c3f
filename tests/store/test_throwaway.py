"""The databases tests run on: separate, safe to lose, and gone afterwards."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliot.runtime.owner_lock import OwnerLock
from foliot.store.connecting import connect
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.server import LOCK, PREFIX, remove_leftovers

KILLED = """
import asyncio, os, signal
from foliot.testing.server import ThrowawayServer

async def main():
    server = ThrowawayServer()
    await server.start()
    print(server.admin_url.partition("host=")[2].partition("&")[0], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_databases_do_not_see_each_other(server: DatabaseFactory) -> None:
    first, second = await server.create(), await server.create()
    async with connect(first) as one, connect(second) as two:
        await one.execute(sql("create table foliot.notes (note text)"))
        assert await two.fetch_value(sql("select to_regclass('foliot.notes')")) is None


async def test_tests_work_as_an_ordinary_role(database_url: str) -> None:
    async with connect(database_url) as session:
        row = await session.fetch_row(
            sql("select rolsuper, rolbypassrls, rolname from pg_roles where rolname = current_user")
        )
    assert row is not None
    assert tuple(row) == (False, False, "foliot")


async def test_the_chosen_server_is_the_one_that_runs(database_url: str) -> None:
    choice = os.environ.get("FOLIOT_TEST_POSTGRES") or "18"
    async with connect(database_url) as session:
        if choice == "system":
            assert session.server_version >= 15
        else:
            assert session.server_version == int(choice)
        assert await session.fetch_value(sql("show fsync")) == "off"


@pytest.fixture
def parent() -> Iterator[Path]:
    """A folder of our own to clear away in, which PostgreSQL's user may pass through."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends a child with its owner")
def test_a_killed_session_leaves_no_server_and_its_folder_goes_with_the_next(parent: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED],
        env=os.environ | {"TMPDIR": str(parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    folder = Path(ended.stdout.strip())
    assert folder.parent == parent, ended.stderr
    while (folder / "data" / "postmaster.pid").exists():
        pass  # the fast shutdown is under way
    remove_leftovers(parent)
    assert list(parent.iterdir()) == []


def test_the_folder_of_a_living_session_stays(parent: Path) -> None:
    living, beginning, other = (
        parent / name for name in (f"{PREFIX}living", f"{PREFIX}new", "other")
    )
    for folder in (living, beginning, other):
        folder.mkdir()
    (other / LOCK).touch()
    lock = OwnerLock.take(living / LOCK)
    remove_leftovers(parent)
    assert sorted(parent.iterdir()) == sorted((living, beginning, other))
    lock.release()
    remove_leftovers(parent)
    assert sorted(parent.iterdir()) == sorted((beginning, other))
