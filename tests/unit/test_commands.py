"""Which programs jobs may run, and how a command is written."""

import pytest

from foliot.core.commands import (
    BYTES_MAX,
    NO_PROGRAMS,
    CommandsClosed,
    Programs,
    check_allowed,
    check_command,
    read_programs,
)
from foliot.core.errors import InvalidInput, PayloadTooLarge
from foliot.core.model import CommandTarget


def test_nothing_may_be_run_unless_the_operator_says_so() -> None:
    with pytest.raises(CommandsClosed) as refused:
        check_allowed("/bin/true", NO_PROGRAMS)
    assert refused.value.code == "FORBIDDEN"
    assert refused.value.field == "target.type"
    assert "FOLIOT_COMMANDS" in str(refused.value)


@pytest.mark.parametrize("path", ["/usr/bin/backu", "/usr/bin/backup2", "/bin/backup", "/bin/sh"])
def test_a_program_counts_by_its_very_path(path: str) -> None:
    programs = read_programs(["/usr/bin/backup", "/opt/run"], "FOLIOT_COMMANDS")
    check_allowed("/usr/bin/backup", programs)
    with pytest.raises(CommandsClosed, match=r"target.argv\[0\]: .* is not a program that may"):
        check_allowed(path, programs)


def test_a_star_allows_any() -> None:
    check_allowed("/bin/sh", read_programs(["*"], "FOLIOT_COMMANDS"))


@pytest.mark.parametrize(
    "entry", ["backup", "bin/x", "/", "//", "/a/../b", "/a/", "//bin/x", "/a/./b", "**", "/bin//x"]
)
def test_an_entry_that_is_no_whole_path_is_named(entry: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_programs(["/bin/x", entry], "FOLIOT_COMMANDS")
    assert refused.value.field == "FOLIOT_COMMANDS"
    assert repr(entry) in refused.value.reason


@pytest.mark.parametrize(
    ("argv", "field"),
    [
        ((), "target.argv"),
        (("ls",), "target.argv[0]"),
        (("./ls",), "target.argv[0]"),
        (("/bin/../bin/ls",), "target.argv[0]"),
        (("/bin/",), "target.argv[0]"),
        (("/bin/${secrets.NAME}",), "target.argv[0]"),
        (("/bin/ls", "a\0b"), "target"),
    ],
)
def test_a_command_that_no_system_would_run_is_refused(argv: tuple[str, ...], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_command(CommandTarget(argv))
    assert refused.value.field == field
    assert refused.value.hint


@pytest.mark.parametrize(
    "name",
    ["", "1A", "A-B", "A=B", "A B", "Ä", "A\n", "A" * 129, "BASH_FUNC_x%%"],
)
def test_a_variable_needs_a_name(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a name of a variable"):
        check_command(CommandTarget(("/bin/ls",), {name: "x"}))


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "PATH", "BASH_ENV", "PYTHONPATH", "PERL5OPT", "NODE_OPTIONS", "IFS"]
)
def test_a_variable_that_makes_a_program_another_one_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_command(CommandTarget(("/bin/ls",), {name: "x"}))
    assert refused.value.field == f"target.env.{name}"
    assert refused.value.reason == "could make the program run something else"


def test_the_attempts_facts_are_not_for_a_job_to_set() -> None:
    with pytest.raises(InvalidInput, match="is set by Foliot"):
        check_command(CommandTarget(("/bin/ls",), {"FOLIOT_FENCE": "9"}))


def test_what_is_too_large_belongs_in_the_payload() -> None:
    check_command(CommandTarget(("/bin/ls", "x" * (BYTES_MAX - 8)), {"A": ""}))
    for target in (
        CommandTarget(("/bin/ls", "x" * BYTES_MAX)),
        CommandTarget(("/bin/ls", "ä" * (BYTES_MAX // 2))),
        CommandTarget(("/bin/ls",), {"A": "x" * BYTES_MAX}),
    ):
        with pytest.raises(PayloadTooLarge, match="payload comes on standard input"):
            check_command(target)


def test_odd_characters_are_arguments_like_others() -> None:
    argv = ("/opt/a b/$(x)", "", "*", "; rm -rf /", "line\nbreak", "ä\u202e", "`id`")
    check_command(CommandTarget(argv, {"EMPTY": "", "lower_1": "$HOME"}))
    assert not Programs()
