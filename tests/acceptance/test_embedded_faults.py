"""What the embedded PostgreSQL says when it cannot run: one line that names the way out."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from foliot.embedded import EmbeddedError, EmbeddedServer, account, installation
from foliot.embedded import server as module_of_server
from foliot.embedded.errors import (
    DirectoryInUse,
    DiskFull,
    NoBinaries,
    NoCluster,
    NotADirectory,
    NotReadyInTime,
    NotWritable,
    NoUnprivilegedUser,
    OtherVersion,
    PointerDamaged,
    ProgramFailed,
    SecretRefused,
)

FAST = {"fsync": "off"}
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


async def refusal(server: EmbeddedServer) -> EmbeddedError:
    with pytest.raises(EmbeddedError) as caught:
        await server.start()
    assert server.pid is None
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.fixture
def disk(open_folder: Path) -> Iterator[Path]:
    """A disk of its own: 8 MB, less than any cluster."""
    folder = open_folder / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=8m,mode=711"]
    if subprocess.run(["mount", *options, "tmpfs", folder], check=False).returncode:
        pytest.skip("root may not mount in this container")
    yield folder
    subprocess.run(["umount", folder], check=True)


def resize(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)


def fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@AS_ROOT
async def test_a_full_disk_is_named_before_there_is_a_cluster(disk: Path) -> None:
    server = EmbeddedServer(disk / "data", settings=FAST)
    error = await refusal(server)
    assert isinstance(error, DiskFull)
    assert str(error).startswith(f"no space left on the disk of {disk / 'data'}")
    assert not list((disk / "data").glob(".new-*"))

    resize(disk, "size=200m")
    await server.start()
    await server.stop()


@AS_ROOT
async def test_a_disk_that_filled_up_is_named_and_loses_nothing(disk: Path) -> None:
    resize(disk, "size=100m")
    server = EmbeddedServer(disk / "data", settings=FAST)
    await server.start()
    await server.stop()
    fill(disk / "filler")
    assert isinstance(await refusal(server), DiskFull)

    (disk / "filler").unlink()
    await server.start()
    await server.stop()


@AS_ROOT
async def test_a_disk_mounted_read_only_is_named(disk: Path) -> None:
    resize(disk, "ro")
    assert isinstance(await refusal(EmbeddedServer(disk / "data")), NotWritable)


async def test_one_owner_at_a_time(open_folder: Path) -> None:
    first = EmbeddedServer(open_folder / "data", settings=FAST)
    second = EmbeddedServer(open_folder / "data", settings=FAST)
    await first.start()
    error = await refusal(second)
    assert isinstance(error, DirectoryInUse)
    assert (error.directory, error.pid) == (open_folder / "data", os.getpid())
    connection = await asyncpg.connect(first.url)
    await connection.close()
    await first.stop()
    await second.start()
    await second.stop()


async def test_another_version_of_postgres_is_told_apart(open_folder: Path) -> None:
    older = EmbeddedServer(open_folder / "data", version=16, settings=FAST)
    await older.start()
    await older.stop()
    error = await refusal(EmbeddedServer(open_folder / "data"))
    assert isinstance(error, OtherVersion)
    assert "made by PostgreSQL 16 and this is PostgreSQL 18" in str(error)
    await older.start()
    await older.stop()


@pytest.mark.parametrize("inside", [False, True])
async def test_a_file_is_not_a_directory(open_folder: Path, inside: bool) -> None:
    file = open_folder / "file"
    file.touch()
    error = await refusal(EmbeddedServer(file / "data" if inside else file))
    assert isinstance(error, NotADirectory)
    assert "is not a directory" in str(error)


async def test_a_wrong_setting_is_named_and_can_be_put_right(open_folder: Path) -> None:
    error = await refusal(EmbeddedServer(open_folder / "data", settings={**FAST, "fast": "yes"}))
    assert isinstance(error, ProgramFailed)
    assert error.program == "postgres"
    assert 'unrecognized configuration parameter "fast"' in str(error)
    server = EmbeddedServer(open_folder / "data", settings=FAST)
    await server.start()
    await server.stop()


async def test_a_damaged_cluster_is_reported_in_the_words_of_the_log(open_folder: Path) -> None:
    server = EmbeddedServer(open_folder / "data", settings=FAST)
    await server.start()
    await server.stop()
    (server.home / "postgres" / "global" / "pg_control").write_bytes(b"")
    error = await refusal(server)
    assert isinstance(error, ProgramFailed)
    assert "pg_control" in str(error)
    assert error.log is not None
    assert error.log.is_file()


async def test_a_folder_of_somebody_else_is_told_apart_and_left_alone(open_folder: Path) -> None:
    foreign = open_folder / "data" / "postgres"
    foreign.mkdir(parents=True)
    (foreign / "docker-compose.yml").touch()
    error = await refusal(EmbeddedServer(open_folder / "data"))
    assert isinstance(error, NoCluster)
    assert str(error).startswith(f"{open_folder / 'data'} is not a Foliot data directory")
    assert [path.name for path in foreign.iterdir()] == ["docker-compose.yml"]


@pytest.mark.parametrize("content", ["another\n", ""])
async def test_a_password_of_another_cluster_is_refused(open_folder: Path, content: str) -> None:
    server = EmbeddedServer(open_folder / "data", settings=FAST)
    await server.start()
    await server.stop()
    secret = open_folder / "data" / "secrets" / "postgres"
    secret.write_text(content)
    error = await refusal(server)
    assert isinstance(error, SecretRefused)
    assert error.path == secret


@pytest.mark.parametrize("name", ["../../etc", "/etc", ""])
async def test_a_pointer_leads_nowhere_else(open_folder: Path, name: str) -> None:
    (open_folder / "data").mkdir()
    (open_folder / "data" / "elsewhere").write_text(f"{name}\n")
    assert isinstance(await refusal(EmbeddedServer(open_folder / "data")), PointerDamaged)


async def test_missing_programs_are_named(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = await refusal(EmbeddedServer(open_folder / "data", version=9))
    assert isinstance(error, NoBinaries)
    monkeypatch.setattr(installation, "PACKAGE", "no_such_package")
    error = await refusal(EmbeddedServer(open_folder / "data"))
    assert str(error).startswith("no PostgreSQL 18 binaries for ")
    assert "FOLIOT_DATABASE_URL" in str(error)


async def test_a_server_that_is_never_ready_is_given_up(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module_of_server, "READY_WITHIN_SECONDS", -1.0)
    error = await refusal(EmbeddedServer(open_folder / "data", settings=FAST))
    assert isinstance(error, NotReadyInTime)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root lends PostgreSQL another user")
async def test_root_without_anyone_to_run_as_is_told(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "CANDIDATES", ("no-such-user",))
    error = await refusal(EmbeddedServer(open_folder / "data"))
    assert isinstance(error, NoUnprivilegedUser)
    assert "no-such-user" in str(error)
