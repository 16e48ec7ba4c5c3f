"""The functions of the schema as files, and what comparing them with a database says.

`functions/<name>.sql` holds one `create or replace function foliot.<name>(`, under the same header
as a statement; its caller is `sql <statement>` or `function <name>`, several separated by commas.
Unlike a migration such a file may change: a database follows it, and forgets what is gone.

Migrations decide which Foliot is newer, functions do not: between two nodes with the same
migrations the last one to migrate wins. So a change of a signature comes with a migration.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Final

from foliot.store.errors import InvalidMigrations
from foliot.store.statements import read_header

CREATE: Final = re.compile(r"^create or replace function foliot\.(?P<name>[a-z_]+)\(", re.MULTILINE)
BODY: Final = re.compile(r"(?im)^\s*(?:as\s+\$|begin\s+atomic\b|return\b)")
COMMENT: Final = re.compile(r"--[^\n]*")


@dataclass(frozen=True)
class StoredFunction:
    name: str
    script: str
    header: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def file(self) -> str:
        return f"functions/{self.name}.sql"

    @property
    def checksum(self) -> str:
        return _digest(self.script)

    @property
    def signature(self) -> str:
        """All that stands before the body: where it differs, replacing may not be allowed."""
        return _digest(" ".join(COMMENT.sub("", BODY.split(self.script, maxsplit=1)[0]).split()))


@dataclass(frozen=True)
class InstalledFunction:
    """What a database remembers of a function."""

    name: str
    checksum: str
    signature: str


@dataclass(frozen=True)
class FunctionChanges:
    """What to do so that a database has the functions of the files and no others.

    A function keeps its identity, and others their plans, while its signature stays; `dropped` has
    the names of which every overload goes first, `gone` those of them that do not come back.
    """

    created: tuple[StoredFunction, ...]
    dropped: tuple[str, ...]
    gone: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.created or self.gone)


@lru_cache(maxsize=1)
def packaged_functions() -> tuple[StoredFunction, ...]:
    """The ones this Foliot came with."""
    return read_functions(files("foliot.store").joinpath("functions"))


def read_functions(folder: Traversable) -> tuple[StoredFunction, ...]:
    """Every `.sql` file of a folder, by name."""
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple(_read(folder, name.removesuffix(".sql")) for name in names)


def _read(folder: Traversable, name: str) -> StoredFunction:
    # Reading as text turns every kind of line end into a plain one.
    script = folder.joinpath(f"{name}.sql").read_text(encoding="utf-8")
    header = MappingProxyType(read_header(f"functions/{name}.sql", script))
    if CREATE.findall(script) != [name]:
        raise InvalidMigrations(f"functions/{name}.sql does not create foliot.{name} and only that")
    return StoredFunction(name, script, header)


def function_changes(
    functions: Sequence[StoredFunction], installed: Iterable[InstalledFunction]
) -> FunctionChanges:
    there = {entry.name: entry for entry in installed}
    created = tuple(
        function
        for function in functions
        if function.name not in there or there[function.name].checksum != function.checksum
    )
    gone = tuple(sorted(there.keys() - {function.name for function in functions}))
    resigned = tuple(
        function.name
        for function in created
        if function.name not in there or there[function.name].signature != function.signature
    )
    return FunctionChanges(created, dropped=(*gone, *resigned), gone=gone)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
