"""The embedded PostgreSQL as it comes: who may do what, who may see what, how it is set."""

import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio

from foliot.embedded import EmbeddedServer

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def ask(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="foliot-acceptance-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(folder: Path) -> AsyncIterator[EmbeddedServer]:
    """One for all: these tests only look."""
    server = EmbeddedServer(folder / "data")
    await server.start()
    yield server
    await server.stop()


async def test_ctrl_c_in_the_terminal_does_not_reach_postgres(server: EmbeddedServer) -> None:
    assert server.pid is not None
    assert os.getsid(server.pid) != os.getsid(0)


async def test_the_role_is_an_ordinary_one_that_owns_its_database(server: EmbeddedServer) -> None:
    role = await ask(
        server.url,
        "select array[rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb,"
        " rolreplication] from pg_roles where rolname = current_user",
    )
    assert role == [True, False, False, False, False, False]
    owner = "select datdba::regrole::text from pg_database where datname = current_database()"
    assert await ask(server.url, owner) == "foliot"
    assert await ask(server.admin_url, "select current_setting('is_superuser')") == "on"


async def test_the_role_may_become_the_tenants_role_and_nobody_connects_as_it(
    server: EmbeddedServer,
) -> None:
    become = "select set_config('role', 'foliot_tenant', true)"
    assert await ask(server.url, become) == "foliot_tenant"
    role = await ask(
        server.admin_url,
        "select array[rolcanlogin, rolsuper, rolbypassrls] from pg_roles"
        " where rolname = 'foliot_tenant'",
    )
    assert role == [False, False, False]


@pytest.mark.parametrize("password", ["wrong", None])
@pytest.mark.parametrize("role", ["foliot", "postgres"])
async def test_the_socket_opens_only_with_the_password(
    server: EmbeddedServer, role: str, password: str | None
) -> None:
    with pytest.raises((asyncpg.InvalidPasswordError, asyncpg.InterfaceError)):
        await asyncpg.connect(
            host=str(server.home / "run"),
            port=5432,
            user=role,
            password=password,
            database=role,
            passfile=str(server.home / "no-such-file"),
        )


async def test_nobody_is_let_in_any_other_way(server: EmbeddedServer) -> None:
    rules = "select array_agg(type || ' ' || auth_method) from pg_hba_file_rules"
    assert await ask(server.admin_url, rules) == ["local scram-sha-256"]


async def test_only_the_owner_can_read_what_is_written(server: EmbeddedServer) -> None:
    others = stat.S_IRWXG | stat.S_IRWXO
    allowed = stat.S_IXGRP | stat.S_IXOTH if os.geteuid() == 0 else 0
    for path in [server.home, *server.home.rglob("*")]:
        mode = path.lstat().st_mode
        assert mode & others & ~(allowed if path == server.home else 0) == 0, path
    assert {path.name for path in (server.home / "secrets").iterdir()} == {"foliot", "postgres"}


async def test_the_settings_are_those_of_production(server: EmbeddedServer) -> None:
    expected = {
        "listen_addresses": "",
        "data_checksums": "on",
        "server_encoding": "UTF8",
        "autovacuum_naptime": "10s",
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "logging_collector": "on",
        "TimeZone": "UTC",
        "jit": "off",
    }
    found = {name: await ask(server.admin_url, f"show {name}") for name in expected}
    assert found == expected
    sorting = (
        "select datlocprovider::text || ' ' || datlocale from pg_database where datname = 'foliot'"
    )
    assert await ask(server.url, sorting) == "b C.UTF-8"
