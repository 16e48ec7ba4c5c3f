"""The embedded PostgreSQL's life: it starts, is found again, is closed to others, comes back."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest

from foliot.embedded import EmbeddedServer, installation, place
from foliot.embedded.errors import DirectoryInUse, NotStarted

FAST = {"fsync": "off"}
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root lends PostgreSQL another user")


async def ask(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def remember(url: str) -> None:
    await ask(url, "create table kept as select 7 as n")


async def recall(url: str) -> object:
    return await ask(url, "select n from kept")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
async def server(open_folder: Path) -> AsyncIterator[EmbeddedServer]:
    """Started with its defaults, except for the one that costs tests their time."""
    server = EmbeddedServer(open_folder / "data", settings=FAST)
    await server.start()
    yield server
    await server.stop()


async def test_a_second_start_is_quick_and_finds_the_data(open_folder: Path) -> None:
    seconds = []
    for _ in range(2):
        server = EmbeddedServer(open_folder / "data")
        began = time.monotonic()
        await server.start()
        seconds.append(time.monotonic() - began)
        await ask(server.url, "create table if not exists kept as select 7 as n")
        await server.stop()
    await server.start()
    assert await recall(server.url) == 7
    assert await ask(server.url, "show fsync") == "on"
    await server.stop()
    assert seconds[1] < 4


async def test_stopping_is_final_and_may_be_said_twice(server: EmbeddedServer) -> None:
    pid = server.pid
    assert pid is not None
    await server.stop()
    await server.stop()
    assert server.pid is None
    assert await server.wait() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_nothing_is_known_before_the_first_start(open_folder: Path) -> None:
    server = EmbeddedServer(open_folder / "data")
    await server.stop()
    assert server.pid is None
    with pytest.raises(NotStarted):
        _ = server.url
    with pytest.raises(NotStarted):
        await server.wait()
    assert names(open_folder) == set()


async def test_settings_are_applied_at_every_start(server: EmbeddedServer) -> None:
    await server.stop()
    again = EmbeddedServer(server.home, settings={**FAST, "work_mem": "7MB"})
    await again.start()
    assert await ask(again.url, "show work_mem") == "7MB"
    await again.stop()
    await server.start()
    assert await ask(server.url, "show work_mem") == "4MB"


async def test_a_killed_server_starts_again_under_the_same_url(server: EmbeddedServer) -> None:
    await remember(server.url)
    url, pid = server.url, server.pid
    busy = await asyncpg.connect(url)
    # Nothing in this statement looks whether the server is still there.
    long = "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b"
    endless = asyncio.ensure_future(busy.execute(long))
    active = "select count(*) from pg_stat_activity where state = 'active' and usename = 'foliot'"
    while not await ask(server.admin_url, active):
        pass
    assert await kill_and_start_again(server) == server.url
    assert server.pid != pid
    assert await recall(url) == 7
    with pytest.raises((asyncpg.PostgresError, OSError)):
        await endless


async def test_a_stale_pid_file_is_no_obstacle(server: EmbeddedServer) -> None:
    await remember(server.url)
    cluster = server.home / "postgres"
    pid_file = (cluster / "postmaster.pid").read_text()
    with bystander(cluster) as process:
        another = f"{process.pid}\n" + pid_file.partition("\n")[2]
        for content in (another, "damaged\n", ""):
            await server.stop()
            (cluster / "postmaster.pid").write_text(content)
            await server.start()
            assert await recall(server.url) == 7
        assert process.poll() is None


@contextmanager
def bystander(cluster: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another program of the user that PostgreSQL runs as."""
    user = cluster.stat().st_uid if os.geteuid() == 0 else None
    with subprocess.Popen(["sleep", "60"], user=user) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_a_start_that_is_given_up_leaves_nothing_half_made(open_folder: Path) -> None:
    (open_folder / "data" / ".new-dead").mkdir(parents=True)
    server = EmbeddedServer(open_folder / "data", settings=FAST)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.15):
            await server.start()
    assert names(open_folder / "data") <= {"lock", "secrets", "log"}
    await server.start()
    assert await ask(server.url, "select 1") == 1
    await server.stop()


async def kill_and_start_again(server: EmbeddedServer) -> str:
    """Returns the URL that was good before."""
    url = server.url
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert await server.wait() == -signal.SIGKILL
    await server.start()
    return url


@pytest.mark.parametrize(
    "name",
    ["/".join(["a-rather-long-name-of-a-folder-within"] * 5), 'it\'s 100% “möbel”, \\ "so" & more'],
    ids=["long", "odd"],
)
async def test_any_path_will_do(open_folder: Path, name: str) -> None:
    server = EmbeddedServer(open_folder / name, settings=FAST)
    for _ in range(2):
        await server.start()
        sockets = (server.home / "run").resolve()
        assert sockets != server.home / "run"
        assert mode(sockets) == 0o700
        assert await ask(server.url, "select 1") == 1
        url = await kill_and_start_again(server)
        assert await ask(url, "select 1") == 1
        await server.stop()
        assert not sockets.exists()
    assert server.home == open_folder / name


async def test_a_link_in_the_place_of_the_socket_is_not_followed_to_destroy(
    open_folder: Path,
) -> None:
    (open_folder / "precious").mkdir()
    (open_folder / "precious" / "file").touch()
    (open_folder / "data").mkdir()
    (open_folder / "data" / "run").symlink_to(open_folder / "precious")
    server = EmbeddedServer(open_folder / "data", settings=FAST)
    await server.start()
    await server.stop()
    assert names(open_folder / "precious") == {"file"}


async def test_the_environment_of_other_databases_does_not_matter(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGPORT", "PGHOST", "PGUSER", "PGDATABASE", "PGDATA", "FOLIOT_SECRET"):
        monkeypatch.setenv(name, "6000")
    server = EmbeddedServer(open_folder / "data", settings=FAST)
    await server.start()
    assert await ask(server.url, "select current_user::text") == "foliot"
    if sys.platform == "linux":
        assert b"6000" not in environment(server.pid)
    await server.stop()


def environment(pid: int | None) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.parametrize("lose", [Path.unlink, lambda path: path.write_text("\n")])
async def test_a_lost_password_of_the_role_is_replaced(
    server: EmbeddedServer, lose: Callable[[Path], object]
) -> None:
    await remember(server.url)
    await server.stop()
    lose(server.home / "secrets" / "foliot")
    await server.start()
    assert await recall(server.url) == 7


@pytest.fixture
def closed_folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def homes_removed() -> Iterator[list[Path]]:
    """Clusters that lie elsewhere, to be cleared away."""
    homes: list[Path] = []
    yield homes
    for home in homes:
        shutil.rmtree(home)


@AS_ROOT
async def test_the_cluster_lies_elsewhere_if_its_user_may_not_enter(
    closed_folder: Path, homes_removed: list[Path]
) -> None:
    server = EmbeddedServer(closed_folder / "data", settings=FAST)
    for _ in range(2):
        await server.start()
        homes_removed[:] = [server.home]
        assert server.home.parent == Path("/var/lib/foliot")
        await ask(server.url, "create table if not exists kept as select 7 as n")
        assert await recall(server.url) == 7
        await server.stop()
    assert mode(closed_folder) == 0o700

    shutil.rmtree(closed_folder / "data")
    await server.start()
    homes_removed.append(server.home)
    assert len(set(homes_removed)) == 2
    with pytest.raises(asyncpg.UndefinedTableError):
        await recall(server.url)
    await server.stop()


@AS_ROOT
async def test_a_copied_folder_does_not_share_a_cluster_that_lies_elsewhere(
    closed_folder: Path, homes_removed: list[Path]
) -> None:
    first = EmbeddedServer(closed_folder / "data", settings=FAST)
    await first.start()
    homes_removed[:] = [first.home]
    shutil.copytree(closed_folder / "data", closed_folder / "copy")
    second = EmbeddedServer(closed_folder / "copy", settings=FAST)
    with pytest.raises(DirectoryInUse) as refused:
        await second.start()
    assert (refused.value.directory, refused.value.pid) == (first.home, os.getpid())
    assert await ask(first.url, "select 1") == 1
    await first.stop()
    await second.start()
    assert second.home == homes_removed[0]
    await second.stop()


@AS_ROOT
async def test_programs_its_user_cannot_reach_are_copied_once(
    open_folder: Path, closed_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = installation.find_installation(18)
    closed = closed_folder / "site-packages"
    shutil.copytree(wheel.programs.parents[1], closed / installation.PACKAGE, copy_function=os.link)
    libraries = f"{installation.PACKAGE}.libs"
    if (wheel.root / libraries).is_dir():
        shutil.copytree(wheel.root / libraries, closed / libraries, copy_function=os.link)
    monkeypatch.syspath_prepend(closed)
    for module in (installation, place):
        monkeypatch.setattr(module, "SHARED", open_folder / "shared")

    server = EmbeddedServer(open_folder / "data", settings=FAST)
    copied = []
    for _ in range(2):
        await server.start()
        copied.append({path: path.stat().st_ino for path in (open_folder / "shared").iterdir()})
        assert await ask(server.url, "select 1") == 1
        await server.stop()
    assert copied[0] == copied[1]
    assert [path.name[:14] for path in copied[0]] == ["postgresql-18-"]
