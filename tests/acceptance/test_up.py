"""`foliot up`: everything starts in one command, stays up whatever dies, and stops in order."""

import asyncio
import os
import signal
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliot.store.connecting import connect
from foliot.testing.commands import (
    Ready,
    clean_environ,
    eventually,
    foliot,
    foliot_up,
    get,
    is_alive,
)
from foliot.testing.database import sql
from foliot.testing.proxy import NodeProxy
from foliot.testing.visitor import Visitor


@pytest.fixture(scope="module")
def running() -> Iterator[Ready]:
    """One server for the tests that leave it as they found it."""
    with tempfile.TemporaryDirectory(prefix="foliot-up-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        with foliot_up(Path(folder) / "data") as ready:
            yield ready


def until_replaced(running: Ready, role: str, old_pid: int) -> int:
    def new_pid() -> int | None:
        pid = running.pids[role]
        return pid if pid != old_pid else None

    return eventually(new_pid, what=f"a new {role} in server.json")


def until_gone(*pids: int) -> None:
    eventually(lambda: not any(map(is_alive, pids)), what=f"processes {pids} are gone")


def test_ready_is_said_only_once_readyz_answers(running: Ready) -> None:
    output = running.command.output
    assert output.index("api listening on") < output.index("Foliot")
    status, body, _ = get(f"{running.url}/readyz")
    assert status == 200
    assert body["status"] == "ready"
    assert all(check["ok"] for check in body["checks"].values())


def test_the_greeting_says_what_runs_where_and_what_to_try(running: Ready) -> None:
    output = running.command.output
    assert f"API         {running.url}" in output
    assert f"PostgreSQL  embedded, data in {running.directory}" in output
    assert f"API key     in {running.directory}/api-key" in output
    assert "Scheduler   runs" in output
    assert "Worker      runs HTTP targets; no handlers: name a module that has some" in output
    assert f"curl {running.url}/readyz" in output
    key = (running.directory / "api-key").read_text().strip()
    assert key not in output
    assert f"db status --data-dir {running.directory}" in output


def test_callbacks_may_go_to_this_machine_and_to_no_other_inside(running: Ready) -> None:
    visitor = Visitor(running.url, (running.directory / "api-key").read_text().strip())
    job = {"name": "n", "schedule": {"type": "MANUAL"}}
    for url, status in (("http://10.0.0.1/", 400), ("http://localhost:9/", 201)):
        body = {**job, "target": {"type": "HTTP", "url": url}}
        assert visitor.try_call("POST", "/jobs", body)[0] == status


def test_the_server_file_says_what_runs_to_its_owner_alone(running: Ready) -> None:
    facts = running.facts
    assert facts.keys() == {"url", "pid", "database_url", "roles"}
    assert facts["pid"] == running.command.pid
    roles = [role["role"] for role in facts["roles"]]
    assert roles == ["postgres", "api", "scheduler", "worker"]
    assert all(is_alive(pid) for pid in running.pids.values())
    for name in ("server.json", "api-key"):
        mode = (running.directory / name).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600


def test_roles_have_sessions_of_their_own(running: Ready) -> None:
    """A terminal's Ctrl-C must reach the supervisor alone: it knows the order of stopping."""
    sessions = {os.getsid(pid) for pid in running.pids.values()}
    assert os.getsid(running.command.pid) not in sessions


async def test_the_server_file_leads_to_the_database(running: Ready) -> None:
    async with connect(running.facts["database_url"]) as session:
        assert await session.fetch_value(sql("select 1")) == 1


def test_no_password_shows_in_the_list_of_processes(running: Ready) -> None:
    password = running.facts["database_url"].split(":")[2].split("@")[0]
    for pid in running.pids.values():
        command_line = Path(f"/proc/{pid}/cmdline")
        if command_line.exists():
            assert password not in command_line.read_text()


def test_a_role_that_is_killed_comes_back_on_the_same_port(running: Ready) -> None:
    url, old_pid = running.url, running.pids["api"]
    os.kill(old_pid, signal.SIGKILL)
    until_replaced(running, "api", old_pid)
    eventually(running.is_ready, what="ready again")
    assert running.url == url
    assert running.command.line_with("api was ended by SIGKILL; starting it again in 0.2 s")
    assert running.command.line_with("api runs again")


def test_a_database_that_is_killed_comes_back_and_the_api_recovers_by_itself(
    running: Ready,
) -> None:
    old_pid, api_pid = running.pids["postgres"], running.pids["api"]
    os.kill(old_pid, signal.SIGKILL)
    eventually(lambda: get(f"{running.url}/readyz")[0] == 503, what="not ready meanwhile")
    assert get(f"{running.url}/livez")[0] == 200
    until_replaced(running, "postgres", old_pid)
    eventually(running.is_ready, what="ready again")
    assert running.pids["api"] == api_pid
    assert "Traceback" not in running.command.output


def test_a_folder_in_use_is_refused_with_the_pid_of_its_owner(running: Ready) -> None:
    with foliot("up", "--data-dir", str(running.directory), "--port", "0") as second:
        assert second.ended() == 1
        (line,) = second.lines
        assert f"{running.directory} is in use by process {running.command.pid} (stop" in line
    assert running.is_ready()


def test_a_port_in_use_is_refused_by_its_number(running: Ready, open_folder: Path) -> None:
    port = running.url.rpartition(":")[2]
    with foliot("up", "--data-dir", str(open_folder / "data"), "--port", port) as second:
        assert second.ended() == 1
        assert second.lines == [
            f"error: port {port} is in use (choose another, or --port 0 for a free one)"
        ]
    assert not (open_folder / "data" / "postgres").exists()


def test_db_commands_find_the_running_server_by_its_folder(running: Ready) -> None:
    with foliot("db", "status", "--data-dir", str(running.directory)) as status:
        assert status.ended() == 0
        assert "the schema is up to date" in status.output
    with foliot("db", "migrate", "--data-dir", str(running.directory)) as migrate:
        assert migrate.ended() == 0
        assert "nothing to do" in migrate.output


def test_another_database_is_used_instead_of_an_embedded_one(
    running: Ready, open_folder: Path
) -> None:
    url = running.facts["database_url"]
    environ = clean_environ(FOLIOT_DATABASE_URL=url)
    with foliot_up(open_folder / "data", environ=environ) as second:
        assert list(second.pids) == ["api", "scheduler", "worker"]
        assert second.facts["database_url"] == url
        assert not (open_folder / "data" / "postgres").exists()
        assert url.split(":")[2].split("@")[0] not in second.command.output
        second.command.press_ctrl_c()
        assert second.command.ended() == 0
    assert running.is_ready()


async def test_ctrl_c_leaves_nothing_behind_and_the_next_start_finds_the_data(
    open_folder: Path,
) -> None:
    directory = open_folder / "data"
    with foliot_up(directory) as first:
        pids = first.pids.values()
        async with connect(first.facts["database_url"]) as session:
            await session.execute(sql("create table foliot.kept as select 42 as answer"))
        first.command.press_ctrl_c()
        assert first.command.ended() == 0
        assert first.command.lines[-1] == "stopped"
    assert not any(is_alive(pid) for pid in pids)
    assert not (directory / "server.json").exists()
    with foliot_up(directory) as second:
        async with connect(second.facts["database_url"]) as session:
            assert await session.fetch_value(sql("select answer from foliot.kept")) == 42
        second.command.send(signal.SIGTERM)
        assert second.command.ended() == 0


def test_after_a_killed_supervisor_a_new_one_takes_over_at_once(open_folder: Path) -> None:
    """On the same folder and port, though a role was too slow to leave and still holds it."""
    directory = open_folder / "data"
    with foliot_up(directory) as first:
        place = ["--data-dir", str(directory), "--port", first.url.rpartition(":")[2]]
        pids = first.pids
        os.kill(pids["api"], signal.SIGSTOP)
        first.command.send(signal.SIGKILL)
        until_gone(first.command.pid)
        with foliot("up", *place) as second:
            eventually(
                lambda: not (directory / "server.json").exists(), what="the old file is gone"
            )
            os.kill(pids["api"], signal.SIGCONT)
            second.line_with("Foliot")
            until_gone(*pids.values())
            ready = Ready(second, directory)
            assert ready.is_ready()
            assert set(ready.pids.values()).isdisjoint(pids.values())


def test_a_role_leaves_by_itself_when_its_supervisor_is_gone(
    open_folder: Path, database_url: str
) -> None:
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url)
    with foliot_up(open_folder / "data", environ=environ) as ready:
        api = ready.pids["api"]
        ready.command.send(signal.SIGKILL)
        eventually(lambda: not is_alive(api), what="the api left", within_seconds=3)


def test_a_second_ctrl_c_does_not_wait_for_a_role_that_hangs(open_folder: Path) -> None:
    with foliot_up(open_folder / "data") as ready:
        pids = ready.pids
        os.kill(pids["api"], signal.SIGSTOP)
        ready.command.press_ctrl_c()
        ready.command.line_with("stopping")
        ready.command.press_ctrl_c()
        assert ready.command.ended(within_seconds=5) == 0
    until_gone(*pids.values())


def test_a_second_ctrl_c_ends_even_a_frozen_database(open_folder: Path) -> None:
    with foliot_up(open_folder / "data") as ready:
        pids = ready.pids
        os.kill(pids["postgres"], signal.SIGSTOP)
        ready.command.press_ctrl_c()
        ready.command.line_with("stopping")
        ready.command.press_ctrl_c()
        assert ready.command.ended(within_seconds=6) == 0
    until_gone(*pids.values())
    with foliot_up(open_folder / "data") as again:
        assert again.is_ready()


async def test_a_database_lost_while_migrating_is_migrated_again(
    open_folder: Path, empty_database_url: str
) -> None:
    async with NodeProxy(empty_database_url) as proxy:
        proxy.lose_next_commit_answer()
        environ = clean_environ(FOLIOT_DATABASE_URL=proxy.url)
        place = ["--data-dir", str(open_folder / "data"), "--port", "0"]
        with foliot("up", *place, environ=environ) as command:
            await asyncio.to_thread(command.line_with, "Foliot")
            assert "was lost: " in command.output
            command.press_ctrl_c()
            assert await asyncio.to_thread(command.ended) == 0


WORK = "from foliot import App\napp = App()\n@app.job\ndef work(): ...\n"


def test_a_module_that_does_not_import_stops_nothing_and_is_tried_again_once_edited(
    open_folder: Path, database_url: str
) -> None:
    """Nor does a file of the user's that is named like a library of ours."""
    tasks = open_folder / "tasks.py"
    tasks.write_text("import no_such_thing\n")
    (open_folder / "fastapi.py").write_text("raise RuntimeError('imported by mistake')\n")
    secret = open_folder / "url"
    secret.write_text(database_url)
    environ = clean_environ(FOLIOT_DATABASE_URL_FILE=str(secret))
    with foliot_up(open_folder / "data", str(tasks), environ=environ, cwd=open_folder) as ready:
        ready.command.line_with("the rest keeps running; edit the file to try again")
        output = ready.command.output
        assert f"error: cannot import {tasks}: ModuleNotFoundError: No module named" in output
        assert "Traceback" in output
        assert ready.is_ready()
        tasks.write_text(WORK)
        assert ready.command.line_with("serves *: HANDLER, HTTP work")
        assert output.count("no_such_thing") == ready.command.output.count("no_such_thing")


def test_handlers_learn_no_secret_and_leave_nothing_running(
    open_folder: Path, database_url: str
) -> None:
    note = open_folder / "note"
    (open_folder / "curious.py").write_text(
        "import os, pathlib, subprocess\n"
        "left = subprocess.Popen(['sleep', '600'])\n"
        f"pathlib.Path({str(note)!r}).write_text(f'{{left.pid}} {{sorted(os.environ)}}')\n"
    )
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url, FOLIOT_API_KEY="secret" * 5)
    curious = str(open_folder / "curious.py")
    with foliot_up(open_folder / "data", curious, environ=environ) as ready:
        ready.command.line_with("serves *: HANDLER, HTTP")
        pid, _, known = note.read_text().partition(" ")
    until_gone(int(pid))
    assert "PATH" in known
    assert "FOLIOT_" not in known
    assert not (open_folder / "data" / "api-key").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_handlers_that_hang_at_import_do_not_outlive_their_supervisor(
    open_folder: Path, database_url: str, number: signal.Signals
) -> None:
    note = open_folder / "note"
    hanging = open_folder / "hanging.py"
    hanging.write_text(
        "import os, pathlib, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"pathlib.Path({str(note)!r}).write_text(f'{{os.getpid()}} {{child.pid}} ')\n"
        "time.sleep(600)\n"
    )
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url)
    with foliot_up(open_folder / "data", str(hanging), environ=environ) as ready:
        eventually(lambda: note.exists() and note.read_text().endswith(" "), what="importing")
        ready.command.send(number)
        ready.command.ended(within_seconds=10)
    until_gone(*map(int, note.read_text().split()))
