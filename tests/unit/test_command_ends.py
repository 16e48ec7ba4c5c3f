"""From what a program did to the end of its attempt."""

import errno
from typing import Any

import pytest

from foliot.core.model import ErrorType, Failure
from foliot.core.storable import RESULT_BYTES_MAX
from foliot.settings import TOLD_TO_COMMANDS
from foliot.testing.handlers import a_task
from foliot.worker.commands.ends import end_of
from foliot.worker.commands.environment import facts_of
from foliot.worker.commands.heard import TAIL_BYTES, Kept
from foliot.worker.tasks import Failed, Held, Succeeded


def told(status: int, stderr: str = "", stdout: str = "", value: object = None) -> dict[str, Any]:
    return {"status": status, "json": value, "stdout": stdout, "stderr": stderr}


def failure(status: int, stderr: str = "") -> Failure:
    ended = end_of(told(status, stderr), "/bin/x")
    assert isinstance(ended, Failed)
    return ended.failure


def test_zero_is_success_and_the_output_its_result() -> None:
    assert end_of(told(0, stdout="hi\n"), "/bin/x") == Succeeded({"exit_code": 0, "stdout": "hi\n"})
    assert end_of(told(0, stdout="[]", value=[]), "/bin/x") == Succeeded([])


@pytest.mark.parametrize(
    ("status", "message", "detail", "again"),
    [
        (1, "the program exited with status 1", "1", True),
        (75, "the program exited with status 75", "75", True),
        (69, "the program exited with status 69", "69", True),
        (64, "the program exited with status 64", "64", False),
        (65, "the program exited with status 65", "65", False),
        (77, "the program exited with status 77", "77", False),
        (78, "the program exited with status 78", "78", False),
        (255, "the program exited with status 255", "255", True),
        (-11, "the program was ended by SIGSEGV", "SIGSEGV", True),
        (-9, "the program was ended by SIGKILL (out of memory?)", "SIGKILL", True),
        (-33, "the program was ended by signal 33", "signal 33", True),
        (
            137,
            "the program exited with status 137, as shells say of SIGKILL (out of memory?)",
            "137",
            True,
        ),
        (143, "the program exited with status 143, as shells say of SIGTERM", "143", True),
    ],
)
def test_what_an_exit_status_means(status: int, message: str, detail: str, again: bool) -> None:
    expected = Failure(ErrorType.EXIT_CODE, message, detail=detail, do_not_retry=not again)
    assert failure(status) == expected


def test_the_error_has_the_last_words() -> None:
    assert failure(1, "\nno disk\n").message == "the program exited with status 1: no disk"


@pytest.mark.parametrize(
    ("number", "detail", "again"),
    [
        (errno.ENOENT, "127", True),
        (errno.ENOTDIR, "127", True),
        (errno.EACCES, "126", True),
        (errno.ENOEXEC, "126", True),
        (errno.E2BIG, "126", False),
    ],
)
def test_a_program_that_cannot_be_started(number: int, detail: str, again: bool) -> None:
    ended = end_of({"errno": number, "reason": "why"}, "/bin/x")
    message = "/bin/x cannot be run: why"
    expected = Failure(ErrorType.EXIT_CODE, message, detail=detail, do_not_retry=not again)
    assert ended == Failed(expected)


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENOSPC])
def test_what_the_machine_lacks_costs_no_attempt(number: int) -> None:
    assert isinstance(end_of({"errno": number, "reason": "none left"}, "/bin/x"), Held)


def kept(*pieces: bytes) -> Kept:
    made = Kept()
    for piece in pieces:
        made.add(piece)
    return made


@pytest.mark.parametrize(
    ("pieces", "value"),
    [
        ((b'{"a":', b" [1]}\n"), {"a": [1]}),
        ((b" []",), []),
        ((b"42",), None),
        ((b'"text"',), None),
        ((b"{}\n{}",), None),
        ((b'{"a": NaN}',), None),
        ((b'{"a": 1e999}',), None),
        ((b'["\\u0000"]',), None),
        ((b'["\\ud800"]',), None),
        ((b"[18446744073709551616]",), None),
        ((b'["\xff"]',), None),
        ((b"[" * 100_000,), None),
        ((b"[" * 40 + b"]" * 40,), None),
        ((b"",), None),
        ((b'["' + b"x" * (RESULT_BYTES_MAX - 4) + b'"]',), ["x" * (RESULT_BYTES_MAX - 4)]),
        ((b'["' + b"x" * (RESULT_BYTES_MAX - 3), b'"]'), None),
    ],
)
def test_output_that_is_one_object_or_list_is_the_result(
    pieces: tuple[bytes, ...], value: object
) -> None:
    assert kept(*pieces).as_json() == value


def test_little_output_is_kept_as_a_whole() -> None:
    text = "x" * (TAIL_BYTES - 1) + "\n"
    assert kept(text.encode()).tail() == text
    assert kept(b"a\xff\0b").tail() == "a\ufffd\ufffdb"


def test_of_much_output_the_last_whole_lines_are_kept() -> None:
    """Half a line might begin with half a secret, which could not be masked."""
    line = b"0123456789\n"
    tail = kept(*[line] * 1000).tail()
    assert len(tail) <= TAIL_BYTES
    assert set(tail.split("\n")) == {"0123456789", ""}
    assert kept(b"x" * 10 * TAIL_BYTES).tail() == ""
    assert kept(b"x" * TAIL_BYTES + b"\n", b"y" * TAIL_BYTES).tail() == "y" * TAIL_BYTES


def test_what_a_command_is_told_stops_no_command_of_ours() -> None:
    assert set(facts_of(a_task("x"))) == TOLD_TO_COMMANDS
