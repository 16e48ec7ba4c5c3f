"""The API role by itself: alive without a database, ready with one, clear about the difference."""

import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from foliot.store.connecting import connect
from foliot.testing.commands import (
    FoliotCommand,
    clean_environ,
    eventually,
    foliot,
    get,
    post,
)
from foliot.testing.database import sql

KEY = "a-key-for-the-operator"


@contextmanager
def api(url: str) -> Iterator[tuple[FoliotCommand, str]]:
    environ = clean_environ(FOLIOT_DATABASE_URL=url, FOLIOT_API_KEY=KEY)
    with foliot("server", "--role", "api", "--port", "0", environ=environ) as command:
        listening = command.line_with("listening on ")
        yield command, listening.rpartition(" ")[2]


def test_a_migrated_database_makes_it_ready_and_sigterm_ends_it_cleanly(
    database_url: str,
) -> None:
    with api(database_url) as (command, url):
        eventually(lambda: get(f"{url}/readyz")[0] == 200, what="ready")
        _, body, headers = get(f"{url}/readyz")
        assert body == {
            "status": "ready",
            "checks": {
                "database": {"ok": True, "detail": "the database answers"},
                "schema": {"ok": True, "detail": body["checks"]["schema"]["detail"]},
                "instants": {"ok": True, "detail": "no instant has been due for too long"},
                "leases": {"ok": True, "detail": "no worker has been silent for too long"},
                "callbacks": {"ok": True, "detail": "no callback has been due for too long"},
            },
        }
        assert headers["x-request-id"]
        command.send(signal.SIGTERM)
        assert command.ended() == 0
        assert "Traceback" not in command.output


def test_log_lines_begin_with_time_level_and_role(database_url: str) -> None:
    with api(database_url) as (command, _):
        assert re.match(
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO api listening on ", command.lines[0]
        )


def test_a_schema_that_is_behind_is_not_ready_until_it_is_migrated(
    empty_database_url: str,
) -> None:
    with api(empty_database_url) as (_, url):
        status, body, _ = get(f"{url}/readyz")
        assert status == 503
        assert body["status"] == "not ready"
        assert "run `foliot db migrate`" in body["checks"]["schema"]["detail"]
        environ = clean_environ(FOLIOT_DATABASE_URL=empty_database_url)
        with foliot("db", "migrate", environ=environ) as migrate:
            assert migrate.ended() == 0
            assert "\napplied 0001_" in migrate.output
            assert "INFO db set lock_timeout = 1000 for role foliot in database" in migrate.output
        eventually(lambda: get(f"{url}/readyz")[0] == 200, what="ready once migrated")


async def test_an_older_node_stays_ready_beside_newer_ones(database_url: str) -> None:
    newer = "insert into foliot.schema_migrations values (9999, 'from_the_future', 'x', now())"
    async with connect(database_url) as session:
        await session.execute(sql(newer))
    with api(database_url) as (_, url):
        eventually(lambda: get(f"{url}/readyz")[0] == 200, what="ready")
        _, body, _ = get(f"{url}/readyz")
    assert "install a newer" in body["checks"]["schema"]["detail"]


def test_without_a_database_it_is_alive_and_says_once_why_it_is_not_ready() -> None:
    with api("postgresql://me:hunter2@127.0.0.1:1/nowhere") as (command, url):
        command.line_with("is not reachable: connection refused; trying again")
        assert get(f"{url}/livez")[:2] == (200, {"status": "alive"})
        status, body, _ = get(f"{url}/readyz")
        assert status == 503
        assert "connection refused" in body["checks"]["database"]["detail"]
        assert "hunter2" not in str(body)
        status, body, _ = get(f"{url}/v1/jobs", key=KEY)
        assert (status, body["error"]["code"]) == (503, "SCHEDULER_UNAVAILABLE")
        command.send(signal.SIGINT)
        assert command.ended() == 0
        assert "hunter2" not in command.output
        assert "Traceback" not in command.output
        assert len([line for line in command.lines if "not reachable" in line]) == 1


def test_head_is_answered_like_get_without_a_body(database_url: str) -> None:
    with api(database_url) as (_, url):
        eventually(lambda: head(f"{url}/readyz") == (200, b""), what="ready")
        assert head(f"{url}/livez") == (200, b"")
    with api("postgresql://127.0.0.1:1/nowhere") as (_, url):
        assert head(f"{url}/livez") == (200, b"")
        assert head(f"{url}/readyz") == (503, b"")


def head(url: str) -> tuple[int, bytes]:
    """Status, and whatever follows the headers until the server closes the connection."""
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as wire:
        wire.sendall(f"HEAD {parts.path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: wire.recv(4096), b""))
    headers, _, body = answer.partition(b"\r\n\r\n")
    return int(headers.split()[1]), body


def test_an_unknown_path_is_answered_in_the_error_envelope() -> None:
    with api("postgresql://127.0.0.1:1/nowhere") as (_, url):
        status, body, headers = get(f"{url}/v1/nothing", key=KEY)
        assert status == 404
        assert body["error"].keys() == {"code", "message", "request_id", "details", "hint"}
        assert body["error"]["code"] == "NOT_FOUND"
        assert body["error"]["request_id"] == headers["x-request-id"]


def test_a_key_in_a_file_opens_the_api_to_those_who_have_it(
    database_url: str, tmp_path: Path
) -> None:
    secret = tmp_path / "key"
    secret.write_text(f"{KEY}\n")
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url, FOLIOT_API_KEY_FILE=str(secret))
    with foliot("server", "--role", "api", "--port", "0", environ=environ) as command:
        url = command.line_with("listening on ").rpartition(" ")[2]
        eventually(lambda: get(f"{url}/readyz")[0] == 200, what="ready")
        assert get(f"{url}/v1/jobs")[0] == 401
        assert get(f"{url}/v1/jobs", key="another-key-for-nobody")[0] == 401
        body = {"name": "hello", "schedule": "0 9 * * *"}
        status, job, headers = post(f"{url}/v1/jobs", body, key=KEY)
        assert (status, job["status"]) == (201, "ACTIVE")
        assert get(f"{url}{headers['location']}", key=KEY)[1] == job
        assert KEY not in command.output


def test_an_address_that_is_not_this_machines_is_told() -> None:
    environ = clean_environ(
        FOLIOT_DATABASE_URL="postgresql://127.0.0.1:1/nowhere", FOLIOT_API_KEY=KEY
    )
    arguments = ["server", "--role", "api", "--host", "192.0.2.1", "--port", "0"]
    with foliot(*arguments, environ=environ) as command:
        assert command.ended() == 1
    assert "cannot listen on 192.0.2.1" in command.output


@pytest.mark.parametrize(
    ("arguments", "environ", "words"),
    [
        (["--role", "api"], {}, "FOLIOT_DATABASE_URL: is not set"),
        (
            ["--role", "api"],
            {"FOLIOT_DATABASE_URL": "postgresql://127.0.0.1:1/nowhere"},
            "error: FOLIOT_API_KEY: is not set (set it to 16 or more random characters",
        ),
        (["--role", "api"], {"FOLIOT_API_KEY": "short"}, "error: FOLIOT_API_KEY: the value is not"),
        (["--role", "api", "--host", "a b"], {}, 'error: --host: "a b" is not an address'),
        (["--role", "api"], {"FOLIOT_PORT": "many"}, 'error: FOLIOT_PORT: "many" is not'),
        (["--role", "apy"], {}, "'apy' is not"),
        (["--role", "api", "--port", "99999"], {}, "99999 is not in the range"),
    ],
)
def test_a_server_that_is_told_nonsense_does_not_start(
    arguments: list[str], environ: dict[str, str], words: str
) -> None:
    with foliot("server", *arguments, environ=clean_environ(**environ)) as command:
        assert command.ended() == 2
        assert words in command.output
        assert "Traceback" not in command.output


def test_a_descriptor_that_is_no_socket_is_refused() -> None:
    environ = clean_environ(
        FOLIOT_DATABASE_URL="postgresql://127.0.0.1:1/nowhere", FOLIOT_API_KEY=KEY
    )
    read_fd, write_fd = os.pipe()
    arguments = ["server", "--role", "api", "--listen-fd", str(read_fd)]
    with foliot(*arguments, environ=environ, pass_fds=[read_fd]) as command:
        assert command.ended() == 1
    os.close(read_fd)
    os.close(write_fd)
    assert f"descriptor {read_fd} is no socket" in command.output
