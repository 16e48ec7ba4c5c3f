"""Exit statuses: one table for every command, and how an error becomes one of them.

An error is told in one line on stderr, without a traceback; a bug keeps its traceback.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NoReturn

import click

from foliot.core.errors import FoliotError


class Exit(IntEnum):
    OK = 0
    ERROR = 1
    USAGE = 2
    SERVER_UNREACHABLE = 9
    INTERRUPTED = 130


_BY_CODE: Final[Mapping[str, Exit]] = {
    "VALIDATION_ERROR": Exit.USAGE,
    "SCHEDULER_UNAVAILABLE": Exit.SERVER_UNREACHABLE,
}


def exit_of(error: FoliotError) -> Exit:
    return _BY_CODE.get(error.code, Exit.ERROR)


def fail(lines: Iterable[object], status: Exit) -> NoReturn:
    for line in lines:
        click.echo(f"error: {line}", err=True)
    raise SystemExit(status)
