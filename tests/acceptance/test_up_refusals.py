"""What keeps `foliot up` from starting is said in one line, without a traceback."""

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from foliot.testing.commands import clean_environ, foliot

UNREACHABLE = "postgresql://me:hunter2@127.0.0.1:1/nowhere"


def test_settings_are_checked_before_anything_is_touched(open_folder: Path) -> None:
    environ = clean_environ(FOLIOT_PROT="80", FOLIOT_LOG_LEVEL="loud")
    with foliot("up", "--data-dir", str(open_folder / "data"), environ=environ) as command:
        assert command.ended() == 2
        first, second = command.lines
    assert first == "error: FOLIOT_PROT: there is no such setting (did you mean FOLIOT_PORT?)"
    assert second.startswith('error: FOLIOT_LOG_LEVEL: "LOUD" is not one of DEBUG, INFO')
    assert not (open_folder / "data").exists()


def test_openings_that_cannot_be_read_are_named_before_anything_is_touched(
    open_folder: Path,
) -> None:
    environ = clean_environ(FOLIOT_CALLBACK_ALLOW="loopback,10.0.0.1/8")
    with foliot("up", "--data-dir", str(open_folder / "data"), environ=environ) as command:
        assert command.ended() == 2
        (line,) = command.lines
    assert line == (
        "error: FOLIOT_CALLBACK_ALLOW: '10.0.0.1/8' is no network, address or name"
        " (did you mean 10.0.0.0/8?)"
    )
    assert not (open_folder / "data").exists()


def refusal_of(directory: Path, before: Callable[[], None] | None = None) -> str:
    place = ["--data-dir", str(directory), "--port", "0"]
    with foliot("up", *place, preexec_fn=before) as command:
        assert command.ended() == 1
        (line,) = command.lines
    return line


def test_a_file_in_the_place_of_the_folder_is_named(open_folder: Path) -> None:
    (open_folder / "data").write_text("")
    assert refusal_of(open_folder / "data") == (
        f"error: cannot write to {open_folder / 'data'}: file exists (choose one with --data-dir)"
    )


def test_a_folder_that_cannot_be_written_is_named(open_folder: Path) -> None:
    """To root every folder is writable, but for those the kernel makes."""
    directory = Path("/sys/foliot") if os.geteuid() == 0 else open_folder / "data" / "sub"
    if os.geteuid() != 0:
        directory.parent.mkdir(mode=0o555)
    assert refusal_of(directory).startswith(f"error: cannot write to {directory}: ")


def test_a_disk_that_takes_no_more_is_named(open_folder: Path) -> None:
    def take_nothing() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    line = refusal_of(open_folder / "data", take_nothing)
    assert line.startswith(f"error: cannot write to {open_folder / 'data'}: file too large")


def test_data_of_another_postgresql_is_refused(open_folder: Path) -> None:
    cluster = open_folder / "data" / "postgres"
    cluster.mkdir(parents=True)
    (cluster / "PG_VERSION").write_text("16\n")
    with foliot("up", "--data-dir", str(open_folder / "data"), "--port", "0") as command:
        assert command.ended() == 1
        (line,) = command.lines
        assert "was made by PostgreSQL 16 and this is PostgreSQL 18" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_database_out_of_reach_is_one_line_and_waiting_can_be_interrupted(
    open_folder: Path, number: signal.Signals
) -> None:
    environ = clean_environ(FOLIOT_DATABASE_URL=UNREACHABLE)
    place = ["--data-dir", str(open_folder / "data"), "--port", "0"]
    with foliot("up", *place, environ=environ) as command:
        line = command.line_with("is not reachable")
        assert line.endswith("connection refused; trying again")
        command.send(number)
        assert command.ended(within_seconds=5) == 0
        assert "hunter2" not in command.output
        assert "Traceback" not in command.output
        assert len([line for line in command.lines if "reachable" in line]) == 1


def test_a_database_url_that_makes_no_sense_is_refused_without_showing_it(
    open_folder: Path,
) -> None:
    environ = clean_environ(FOLIOT_DATABASE_URL="postgresql://me:hun#ter2@host/db")
    place = ["--data-dir", str(open_folder / "data"), "--port", "0"]
    with foliot("up", *place, environ=environ) as command:
        assert command.ended() == 2
        (line,) = command.lines
        assert line.startswith("error: FOLIOT_DATABASE_URL: ")
        assert "ter2" not in line
