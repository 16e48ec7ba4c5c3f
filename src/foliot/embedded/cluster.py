"""A new cluster, made aside and moved into place when complete, and the check of an old one."""

import asyncio
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from foliot.embedded.account import Account
from foliot.embedded.child import Child
from foliot.embedded.errors import DiskFull, NoCluster, OtherVersion, ProgramFailed
from foliot.embedded.failure import NO_SPACE, last_lines
from foliot.embedded.installation import Installation
from foliot.embedded.place import Place
from foliot.embedded.private_files import make_private_folder, write_private_file

DRAFT_PREFIX: Final = ".new-"
BUILTIN_LOCALES_SINCE: Final = 17


def check_version(place: Place, version: int) -> None:
    try:
        found = (place.cluster / "PG_VERSION").read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        raise NoCluster(place.cluster) from None
    if found != str(version):
        raise OtherVersion(place.directory, found, version)


def clear_drafts(place: Place) -> None:
    for draft in place.home.glob(f"{DRAFT_PREFIX}*"):
        shutil.rmtree(draft)


async def make_cluster(
    place: Place, installation: Installation, *, password: str, durable: bool
) -> None:
    """All or nothing: an `initdb` that is killed leaves only a draft."""
    draft = _make_draft(place, password)
    try:
        await _initdb(draft, place.account, installation, durable=durable)
        (draft / "cluster").rename(place.cluster)
    finally:
        shutil.rmtree(draft)


def _make_draft(place: Place, password: str) -> Path:
    draft = Path(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=place.home))
    if not place.account.is_us:
        draft.chmod(0o711)
    write_private_file(draft / "password", password + "\n", place.account)
    make_private_folder(draft / "cluster", place.account)
    return draft


async def _initdb(
    draft: Path, account: Account, installation: Installation, *, durable: bool
) -> None:
    command = [
        str(installation.initdb),
        f"--pgdata={draft / 'cluster'}",
        "--username=postgres",
        f"--pwfile={draft / 'password'}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--data-checksums",
        "--no-instructions",
    ]
    if installation.version >= BUILTIN_LOCALES_SINCE:
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if not durable:
        command.append("--no-sync")
    child = Child(command, account, subprocess.PIPE)
    try:
        status = await child.wait()
    except asyncio.CancelledError:
        await child.end()
        raise
    if status != 0:
        said = child.output.decode(errors="replace")
        if NO_SPACE in said:
            raise DiskFull(draft.parent)
        raise ProgramFailed("initdb", status, last_lines(said))
