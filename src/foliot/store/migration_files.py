"""The migrations as files, and what comparing them with a database says.

`migrations/NNNN_name.sql`, numbered from 1 without a gap. An applied file never changes again: its
checksum is kept, taken over the text with plain line ends, since a checkout may turn them around.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from foliot.store.errors import InvalidMigrations, MigrationChanged, SchemaNewer

FILE_NAME: Final = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)\.sql")


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    script: str

    @property
    def file(self) -> str:
        return f"{self.version:04}_{self.name}.sql"

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.script.encode()).hexdigest()


@dataclass(frozen=True)
class AppliedMigration:
    """What a database remembers of a migration."""

    version: int
    name: str
    checksum: str


@lru_cache(maxsize=1)
def packaged_migrations() -> tuple[Migration, ...]:
    """The ones this Foliot came with."""
    return read_migrations(files("foliot.store").joinpath("migrations"))


def read_migrations(folder: Traversable) -> tuple[Migration, ...]:
    """Every `.sql` file of a folder, in order."""
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    found = [_read(folder, name) for name in names]
    for expected, migration in enumerate(found, start=1):
        if migration.version != expected:
            raise InvalidMigrations(f"{migration.file} should have the number {expected:04}")
    return tuple(found)


def _read(folder: Traversable, name: str) -> Migration:
    match = FILE_NAME.fullmatch(name)
    if match is None:
        raise InvalidMigrations(f"{name} is not named like 0001_what_it_does.sql")
    # Reading as text turns every kind of line end into a plain one.
    script = folder.joinpath(name).read_text(encoding="utf-8")
    return Migration(int(match["version"]), match["name"], script)


def pending(
    migrations: Sequence[Migration], applied: Iterable[AppliedMigration]
) -> tuple[Migration, ...]:
    """What is still to be done, or why nothing may be done."""
    known = {migration.version: migration for migration in migrations}
    done = {entry.version: entry for entry in applied}
    if newer := done.keys() - known.keys():
        raise SchemaNewer(level=max(newer), known=len(migrations))
    for entry in done.values():
        if known[entry.version].checksum != entry.checksum:
            raise MigrationChanged(known[entry.version].file)
    missing = tuple(migration for migration in migrations if migration.version not in done)
    if missing and done and missing[0].version < max(done):
        raise InvalidMigrations(f"{missing[0].file} was never applied, later ones were")
    return missing
