"""The command line's manners: quick help, plain errors, exit statuses from one table."""

import subprocess
import sys
from pathlib import Path

import pytest

from foliot import __version__
from foliot.testing.commands import clean_environ, foliot


def test_help_loads_none_of_the_server() -> None:
    """What `--help` has to import decides how long it takes."""
    heavy = {"asyncio", "asyncpg", "fastapi", "pydantic", "pydantic_settings", "uvicorn", "ssl"}
    program = (
        "import sys; from foliot.cli.main import foliot\n"
        "foliot.main(['--help'], standalone_mode=False)\n"
        f"print('loaded', sorted({heavy!r} & sys.modules.keys()))"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output.endswith("loaded []\n")


def test_help_shows_every_command_and_the_exit_statuses() -> None:
    with foliot("--help") as command:
        assert command.ended() == 0
    for word in ("up", "server", "db", "worker", "version", "9 server or database unreachable"):
        assert word in command.output


def test_version_is_the_packages() -> None:
    with foliot("version") as command:
        assert command.ended() == 0
    assert command.lines == [f"foliot {__version__}"]


def test_a_misspelt_command_is_answered_with_the_right_one() -> None:
    with foliot("wroker") as command:
        assert command.ended() == 2
    assert "Did you mean 'worker'?" in command.output


@pytest.mark.parametrize("verb", ["status", "migrate"])
def test_a_folder_without_a_server_says_how_to_get_one(tmp_path: Path, verb: str) -> None:
    with foliot("db", verb, "--data-dir", str(tmp_path)) as command:
        assert command.ended() == 9
    (line,) = command.lines
    assert line.startswith(f"error: no server runs in {tmp_path} (start one with `foliot up`,")


def test_an_empty_folder_name_counts_as_not_given(tmp_path: Path) -> None:
    with foliot("db", "status", "--data-dir", "", cwd=tmp_path) as command:
        assert command.ended() == 9
    assert command.lines[0].startswith("error: no server runs in .foliot ")


def test_help_says_what_migrating_does_to_the_role() -> None:
    with foliot("db", "migrate", "--help") as command:
        assert command.ended() == 0
    assert "Give Foliot a role of its own" in command.output


def test_an_unreachable_database_is_one_line_without_its_password() -> None:
    url = "postgresql://me:hunter2@127.0.0.1:1/nowhere"
    with foliot("db", "status", environ=clean_environ(FOLIOT_DATABASE_URL=url)) as command:
        assert command.ended() == 9
    (line,) = command.lines
    assert line.startswith("error: database postgresql://me@127.0.0.1:1/nowhere is not reachable")


def test_a_module_and_a_file_are_imported_as_a_worker_would(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "mail.py").write_text("import shop\n")
    (tmp_path / "lone.py").write_text("import neighbour\n")
    (tmp_path / "neighbour.py").write_text("")
    with foliot("worker", "check", "shop.mail", "lone.py", cwd=tmp_path) as command:
        assert command.ended() == 0
    assert command.lines == [
        f"imported shop.mail from {tmp_path / 'shop' / 'mail.py'}",
        f"imported lone from {tmp_path / 'lone.py'}",
    ]


def test_every_target_is_tried_and_one_failure_fails_the_check(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def f():\n    return 1 / 0\n\nf()\n")
    (tmp_path / "good.py").write_text("")
    with foliot("worker", "check", "bad.py", "good.py", cwd=tmp_path) as command:
        assert command.ended() == 1
    assert "error: cannot import bad.py: ZeroDivisionError: division by zero" in command.lines
    assert f"imported good from {tmp_path / 'good.py'}" in command.lines
    assert f'  File "{tmp_path / "bad.py"}", line 2, in f' in command.lines
    assert "importlib" not in command.output
