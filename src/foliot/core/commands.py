"""Programs that jobs may run: which ones the operator allows, and how a command is written.

Nothing is allowed unless it is named by its whole path. A path counts as it is written, so that a
name beside it is another program, also where both are links to the same file: a program may do
something else under another name. Whether a path leads through other folders on some machine is for
the worker there to find out.
"""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from foliot.core.errors import InvalidInput, PayloadTooLarge
from foliot.core.model import CommandTarget

ANY: Final = "*"
# The system's own limit for one argument is 128 KB; what is larger belongs in the payload.
BYTES_MAX: Final = 96 * 1024
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# Variables by which an allowed program would be made to run something else.
_LOADING_PREFIXES: Final = ("LD_", "DYLD_", "PERL5", "RUBY", "BASH_", "GIT_")
_LOADING: Final = frozenset(
    {
        "PATH",
        "ENV",
        "IFS",
        "PS4",
        "SHELLOPTS",
        "BASHOPTS",
        "GCONV_PATH",
        "GLIBC_TUNABLES",
        "PERLLIB",
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTHONINSPECT",
        "PYTHONSTARTUP",
        "PYTHONBREAKPOINT",
        "PYTHONWARNINGS",
        "NODE_OPTIONS",
        "NODE_PATH",
        "JAVA_TOOL_OPTIONS",
        "CLASSPATH",
        "PAGER",
        "EDITOR",
        "VISUAL",
    }
)


@dataclass(eq=False)
class CommandsClosed(InvalidInput):
    """The operator lets nobody run this."""

    code: ClassVar[str] = "FORBIDDEN"


@dataclass(frozen=True, slots=True)
class Programs:
    """What may be run; nothing, if it is empty."""

    paths: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.paths)

    @property
    def has_any(self) -> bool:
        return ANY in self.paths

    def has(self, path: str) -> bool:
        return self.has_any or path in self.paths


NO_PROGRAMS: Final = Programs()


def read_programs(entries: Iterable[str], field: str) -> Programs:
    for entry in entries:
        if entry != ANY and not is_whole_path(entry):
            hint = "write /usr/bin/backup, or * for any program"
            raise InvalidInput(f"{entry!r} is not the whole path of a program", field, hint)
    return Programs(frozenset(entries))


def is_whole_path(path: str) -> bool:
    """From the root, in its shortest form."""
    is_shortest = path == posixpath.normpath(path) and not path.startswith("//")
    return is_shortest and path.startswith("/") and path != "/"


def check_command(target: CommandTarget) -> None:
    """Refuse what no system would run, and variables that make a program something else."""
    if not target.argv:
        raise InvalidInput("is empty", "target.argv", "name a program: /usr/bin/backup")
    _check_program(target.argv[0])
    for name in target.env:
        _check_variable(name)
    texts = [*target.argv, *target.env.values()]
    if any("\0" in text for text in texts):
        raise InvalidInput("has a NUL character", "target", "no program can be given one")
    size = sum(len(text.encode(errors="replace")) for text in [*texts, *target.env])
    if size > BYTES_MAX:
        hint = f"up to {BYTES_MAX} are allowed: the payload comes on standard input"
        raise PayloadTooLarge(f"argv and env have {size} bytes", "target", hint)


def check_allowed(path: str, programs: Programs) -> None:
    """By the path as it is written."""
    if not programs:
        raise CommandsClosed(
            "commands are off",
            "target.type",
            "an operator allows programs with FOLIOT_COMMANDS; HTTP and HANDLER targets are on",
        )
    if not programs.has(path):
        raise CommandsClosed(
            f"{path[:200]!r} is not a program that may be run",
            "target.argv[0]",
            "an operator allows it by its whole path, with FOLIOT_COMMANDS",
        )


def _check_program(path: str) -> None:
    if "${" in path:
        hint = "write the path as it is; references may stand in what follows"
        raise InvalidInput("a program cannot be a reference", "target.argv[0]", hint)
    if not is_whole_path(path):
        words = f"{path[:200]!r} is not the whole path of a program"
        raise InvalidInput(words, "target.argv[0]", "write /usr/bin/backup; no shell looks it up")


def _check_variable(name: str) -> None:
    field = f"target.env.{name[:80]}"
    if not _NAME.fullmatch(name):
        hint = "use letters, digits and _, no digit first, at most 128"
        raise InvalidInput("is not a name of a variable", field, hint)
    if name.startswith("FOLIOT_"):
        raise InvalidInput("is set by Foliot, or not at all", field, "choose another name")
    if name in _LOADING or name.startswith(_LOADING_PREFIXES):
        words = "could make the program run something else"
        raise InvalidInput(words, field, "have the program set it itself")
