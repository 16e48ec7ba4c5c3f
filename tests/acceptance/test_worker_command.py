"""`foliot worker run`: finds its database, and says in clear words what keeps it from working."""

import signal
from pathlib import Path

from foliot.runtime.data_directory import RunningServer, write_server_file
from foliot.testing.commands import clean_environ, foliot

WORK = "from foliot import App\napp = App()\n@app.job\ndef work(): ...\n"


def test_a_module_that_does_not_import_stops_it_with_its_traceback(
    open_folder: Path, database_url: str
) -> None:
    (open_folder / "tasks.py").write_text("def ask():\n    return 1 / 0\n\nask()\n")
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url)
    with foliot("worker", "run", "tasks.py", environ=environ, cwd=open_folder) as command:
        assert command.ended() == 1
    assert any(line.startswith("Traceback") for line in command.lines)
    assert "in ask" in command.output
    assert command.lines[-1] == (
        "error: cannot import tasks.py: ZeroDivisionError: division by zero"
    )


def test_it_finds_the_database_of_a_server_in_the_same_folder(
    open_folder: Path, database_url: str
) -> None:
    (open_folder / "tasks.py").write_text(WORK)
    (open_folder / ".foliot").mkdir()
    server = RunningServer("http://127.0.0.1:1", 1, database_url, ())
    write_server_file(open_folder / ".foliot", server)
    with foliot("worker", "run", "tasks", cwd=open_folder) as command:
        command.line_with("serves default: HANDLER, HTTP work")
        command.send(signal.SIGTERM)
        assert command.ended() == 0
        assert command.lines[-1].endswith("INFO worker stopped")


def test_without_any_database_it_says_how_to_get_one(open_folder: Path) -> None:
    with foliot("worker", "run", cwd=open_folder) as command:
        assert command.ended() == 9
        (line,) = command.lines
    assert line.startswith("error: no server runs in .foliot (start one with `foliot up`")


def test_settings_are_named_by_their_options(open_folder: Path) -> None:
    with foliot("worker", "run", "--concurrency", "0", cwd=open_folder) as command:
        assert command.ended() == 2
        (line,) = command.lines
    assert line.startswith('error: --concurrency: "0" is not a whole number from 1 to 100000')


def test_it_waits_for_tables_that_are_not_there_yet(
    open_folder: Path, empty_database_url: str
) -> None:
    environ = clean_environ(FOLIOT_DATABASE_URL=empty_database_url)
    with foliot("worker", "run", environ=environ, cwd=open_folder) as command:
        command.line_with("(run `foliot db migrate`); waiting")
        command.send(signal.SIGTERM)
        assert command.ended() == 0
