"""Every statement is a file: `sql/<aggregate>/<verb_noun>.sql`, read once, known by that name.

Each opens with a header of `-- key: value` lines, one for each of `HEADER`, that says what the
statement is for, which module sends it, which state changes it makes (`none`, or
`execution CLAIM: QUEUED -> RUNNING`; several are separated by commas), which columns fence it and
which index it leans on. Time comes in as an argument: `coalesce($1::timestamptz,
statement_timestamp())`, so that a test can say what time it is. It is `statement_timestamp()`
because that one is an index bound, unlike `clock_timestamp()`, which a plan must ask anew for each
row, and moves on within a transaction, unlike `now()`, which a wait for a lock leaves behind.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Final

HEADER: Final = ("purpose", "caller", "transition", "fence", "index")


@dataclass(frozen=True)
class Statement:
    """One SQL statement and the name it has in errors and logs."""

    name: str
    sql: str
    header: Mapping[str, str] = field(default_factory=dict, compare=False)


@cache
def statement(name: str) -> Statement:
    """The statement in `sql/<name>.sql`; `name` is `aggregate/verb_noun`."""
    text = _folder().joinpath(f"{name}.sql").read_text(encoding="utf-8")
    header = read_header(f"sql/{name}.sql", text)
    return Statement(name=name, sql=text, header=MappingProxyType(header))


def read_header(file: str, text: str) -> dict[str, str]:
    """The comment lines a file opens with; a line without a key continues the one before."""
    header: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        word, colon, value = line.removeprefix("--").strip().partition(":")
        if colon and word in HEADER:
            key = word
            header[key] = value.strip()
        elif key:
            header[key] += f" {line.removeprefix('--').strip()}"
    missing = [key for key in HEADER if not header.get(key)]
    if missing:
        raise ValueError(f"{file}: the header lacks {', '.join(missing)}")
    return header


def every_statement() -> Iterator[Statement]:
    """All of them, by name: for tests and for whoever wants to read along."""
    for aggregate in sorted(_folder().iterdir(), key=lambda folder: folder.name):
        if aggregate.is_dir():
            for file in sorted(aggregate.iterdir(), key=lambda file: file.name):
                if file.name.endswith(".sql"):
                    yield statement(f"{aggregate.name}/{file.name.removesuffix('.sql')}")


def _folder() -> Traversable:
    return files("foliot.store").joinpath("sql")
