"""Owners of an embedded PostgreSQL that are processes of their own: killed ones, ordinary ones."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import asyncpg
import pytest

import foliot
from foliot.embedded import EmbeddedServer
from foliot.embedded.account import Account
from foliot.testing.commands import eventually, is_alive

NOBODY = 65534
FAST = {"fsync": "off"}

# Starts a server and says where; stops it when its standard input ends. With a third argument
# nothing ties PostgreSQL to its owner's life, as on systems without that service.
OWNER = """
import asyncio, json, sys
from pathlib import Path
from foliot.embedded import EmbeddedError, EmbeddedServer, child

async def main():
    if len(sys.argv) > 2:
        child.TETHER = Path(sys.argv[2])
    server = EmbeddedServer(Path(sys.argv[1]), settings={"fsync": "off"})
    try:
        await server.start()
    except EmbeddedError as error:
        print(json.dumps({"error": type(error).__name__, "text": str(error)}), flush=True)
        return
    facts = {"pid": server.pid, "url": server.url, "home": str(server.home)}
    print(json.dumps(facts), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()

asyncio.run(main())
"""

UNTETHERED = """
import os, sys
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[2]))
os.execv(sys.argv[4], sys.argv[4:])
"""


BECOME_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")

MOUNT = """
place=$0; prefix=$1; packages=$2; sources=$3; interpreter=$4; shift 4
mount --bind "$prefix" "$place/python" &&
mount --bind "$packages" "$place/packages" &&
mount --bind "$sources" "$place/sources" &&
export PYTHONPATH=$place/sources:$place/packages LD_LIBRARY_PATH=$place/python/lib &&
exec {become} "$place/python/bin/$interpreter" "$@"
"""
MOUNT_THEN = (
    *("unshare", "--mount", "--propagation=private", "/bin/sh", "-c"),
    MOUNT.format(become=" ".join(BECOME_NOBODY)),
)


@dataclass(frozen=True)
class Owner:
    process: subprocess.Popen[str]
    facts: dict[str, str]

    @property
    def postgres_pid(self) -> int:
        return int(self.facts["pid"])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.communicate(timeout=30)


class StartOwner(Protocol):
    def __call__(
        self, directory: Path, *, tethered: bool = True, as_nobody: bool = False
    ) -> Owner: ...


def wait_for_end(pid: int, *, seconds: float = 30) -> None:
    """Of any process, not only of a child."""
    eventually(lambda: not is_alive(pid), what=f"the end of {pid}", within_seconds=seconds)


@pytest.fixture
def nobodys_folder(open_folder: Path) -> Path:
    """A folder of the user `nobody`, to be an ordinary user in; ours if we are one already."""
    folder = open_folder / "nobody"
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    return folder


@pytest.fixture
def as_nobody_command(open_folder: Path) -> list[str]:
    """What to put before Python's arguments to be an ordinary user who can reach Foliot.

    Where the interpreter or the checkout lies under a closed folder such as /root, `nobody` gets
    them mounted in a place of its own, which goes away with the process.
    """
    if os.geteuid() != 0:
        return [sys.executable]
    interpreter = Path(sys.executable).resolve()
    sources, packages = Path(foliot.__file__).parents[1], Path(sysconfig.get_path("purelib"))
    nobody = Account(NOBODY, NOBODY)
    if all(map(nobody.may_enter, (interpreter.parent, sources, packages))):
        return [*BECOME_NOBODY, sys.executable]
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("root may not mount in this container, and nobody cannot reach this Python")
    for name in ("python", "packages", "sources"):
        (open_folder / name).mkdir()
    places = [str(open_folder), str(interpreter.parents[1]), str(packages), str(sources)]
    return [*MOUNT_THEN, *places, interpreter.name]


@pytest.fixture
def start_owner(open_folder: Path, as_nobody_command: list[str]) -> Iterator[StartOwner]:
    owners: list[Owner] = []
    untethered = open_folder / "untethered.py"
    untethered.write_text(UNTETHERED)

    def start(directory: Path, *, tethered: bool = True, as_nobody: bool = False) -> Owner:
        python = as_nobody_command if as_nobody else [sys.executable]
        process = subprocess.Popen(
            [*python, "-c", OWNER, str(directory), *([] if tethered else [str(untethered)])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        owner = Owner(process, {})
        owners.append(owner)
        assert process.stdout is not None
        owner.facts.update(json.loads(process.stdout.readline()))
        return owner

    yield start
    for owner in owners:
        owner.process.kill()
        owner.process.communicate()
        if "pid" in owner.facts:
            end_if_ours(owner.postgres_pid)


def end_if_ours(pid: int) -> None:
    """A server whose owner was killed, in case the test failed before it was ended."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return
    if b"foliot-acceptance-" in command:
        os.kill(pid, signal.SIGINT)
        wait_for_end(pid)


async def remember(url: str) -> None:
    """One row, committed."""
    connection = await asyncpg.connect(url)
    await connection.execute("create table if not exists kept (n int); insert into kept values (7)")
    await connection.close()


async def recall(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("select count(*) from kept"))
    finally:
        await connection.close()


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ties a process to its parent's life"
)
async def test_postgres_ends_when_its_owner_is_killed(
    open_folder: Path, start_owner: StartOwner
) -> None:
    owner = start_owner(open_folder / "data")
    owner.kill()
    wait_for_end(owner.postgres_pid)


async def test_a_killed_owner_is_followed_by_a_new_one_that_finds_the_data(
    open_folder: Path, start_owner: StartOwner
) -> None:
    owner = start_owner(open_folder / "data")
    await remember(owner.facts["url"])
    owner.kill()
    server = EmbeddedServer(open_folder / "data", settings=FAST)
    await server.start()
    assert await recall(server.url) == 1
    await server.stop()


async def test_a_server_that_outlived_its_owner_is_stopped_by_the_next(
    open_folder: Path, start_owner: StartOwner
) -> None:
    owner = start_owner(open_folder / "data", tethered=False)
    await remember(owner.facts["url"])
    owner.kill()
    assert is_running(owner.postgres_pid)
    server = EmbeddedServer(open_folder / "data", settings=FAST)
    await server.start()
    assert not is_running(owner.postgres_pid)
    assert await recall(server.url) == 1
    await server.stop()
    # It was shut down, not torn down: no recovery was needed.
    log = "".join(path.read_text() for path in (server.home / "log").iterdir())
    assert "database system was shut down at" in log
    assert "not properly shut down" not in log


async def test_a_second_owner_is_refused_and_told_who_the_first_is(
    open_folder: Path, start_owner: StartOwner
) -> None:
    first = start_owner(open_folder / "data")
    second = start_owner(open_folder / "data")
    assert second.facts["error"] == "DirectoryInUse"
    assert f"in use by process {first.process.pid}:" in second.facts["text"]
    assert is_running(first.postgres_pid)


async def test_an_ordinary_user_has_everything_in_the_data_directory(
    nobodys_folder: Path, start_owner: StartOwner
) -> None:
    owner = start_owner(nobodys_folder / "data", as_nobody=True)
    owner.stop()
    again = start_owner(nobodys_folder / "data", as_nobody=True)
    assert again.facts["home"] == str(nobodys_folder / "data")
    assert again.facts["url"] == owner.facts["url"]
    assert (nobodys_folder / "data").stat().st_mode & 0o777 == 0o700


async def test_root_may_follow_an_ordinary_user_and_the_other_way_round(
    nobodys_folder: Path, start_owner: StartOwner
) -> None:
    for as_nobody in (True, False, True):
        owner = start_owner(nobodys_folder / "data", as_nobody=as_nobody)
        assert "error" not in owner.facts
        owner.stop()


@pytest.mark.parametrize("existing", [True, False])
async def test_a_directory_that_cannot_be_written_is_named(
    nobodys_folder: Path, start_owner: StartOwner, existing: bool
) -> None:
    directory = nobodys_folder / "data"
    close(nobodys_folder, inner=directory if existing else None)
    owner = start_owner(directory, as_nobody=True)
    assert owner.facts["error"] == "NotWritable"
    assert owner.facts["text"].startswith(str(directory))
    assert "cannot be written" in owner.facts["text"]


def close(folder: Path, *, inner: Path | None) -> None:
    """Takes the owner's right to write, from a folder inside if one is wanted there."""
    if inner is None:
        folder.chmod(0o500)
        return
    inner.mkdir(mode=0o500)
    facts = folder.stat()
    os.chown(inner, facts.st_uid, facts.st_gid)


def is_running(pid: int) -> bool:
    listing = ["/bin/ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(listing, capture_output=True, text=True, check=False).stdout.strip()
    return state != "" and not state.startswith("Z")
