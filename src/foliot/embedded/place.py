"""Where everything lies: the data directory, and for root sometimes a second place.

    DIR/lock, DIR/secrets          ours
    DIR/postgres, DIR/log, DIR/run cluster, logs, socket: of the user PostgreSQL runs as

If that user may not enter DIR, the second line lies under /var/lib/foliot/ID instead, and
DIR/elsewhere holds the ID. Deleting DIR then means a new cluster: what no DIR points to is
nobody's data.
"""

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import ascii_letters, digits
from typing import Final

from foliot.embedded.account import SHARED, Account, choose_account
from foliot.embedded.errors import PointerDamaged
from foliot.embedded.private_files import (
    make_passable_folder,
    make_private_folder,
    write_private_file,
)
from foliot.runtime.chance import random_name

SOCKET_NAME: Final = ".s.PGSQL.5432"

# The shortest limit of a socket's path among our platforms (macOS; Linux allows 107).
SOCKET_PATH_BYTES_MAX: Final = 103

# What needs no quoting in a URL, nor in PostgreSQL's own list of folders.
PLAIN: Final = frozenset(ascii_letters + digits + "/._-")


@dataclass(frozen=True)
class Place:
    directory: Path
    home: Path
    account: Account

    @property
    def cluster(self) -> Path:
        return self.home / "postgres"

    @property
    def logs(self) -> Path:
        return self.home / "log"

    @property
    def startup_log(self) -> Path:
        """What PostgreSQL says before it opens its own log."""
        return self.home / "startup.log"

    @property
    def sockets(self) -> Path:
        """The socket's folder, or a link to it."""
        return self.home / "run"

    def secret(self, name: str) -> Path:
        return self.directory / "secrets" / name


def make_directory(directory: Path) -> None:
    """Root lets others pass through, but not look: PostgreSQL's user has its folders inside."""
    if not directory.is_dir():
        directory.mkdir(parents=True)
        directory.chmod(0o711 if os.geteuid() == 0 else 0o700)


def find_place(directory: Path) -> Place:
    pointer = directory / "elsewhere"
    if pointer.exists():
        home = SHARED / _home_name(pointer)
    else:
        home = directory
        account = choose_account(home / "postgres")
        if not (home / "postgres").exists() and not account.may_enter(directory):
            home = SHARED / random_name()
            write_private_file(pointer, home.name + "\n")
    if home != directory:
        make_passable_folder(SHARED)
        make_passable_folder(home)
    place = Place(directory, home, choose_account(home / "postgres"))
    make_private_folder(directory / "secrets", Account(os.geteuid(), os.getegid()))
    make_private_folder(place.logs, place.account)
    return place


def _home_name(pointer: Path) -> str:
    """Checked, since root follows it: a name and nothing that leads out of the shared folder."""
    name = pointer.read_text(encoding="utf-8").strip()
    if not (name.isalnum() and name.isascii()):
        raise PointerDamaged(pointer)
    return name


def open_sockets_folder(place: Place, *, again: Path | None = None) -> Path:
    """An empty private folder for the socket; a short one when the path here does not do.

    `again` is the one we had before a crash: it keeps its name, since clients know it.
    """
    if again is not None and again.is_dir():
        _empty(again)
        return again
    close_sockets_folder(place)
    if _is_usable(place.sockets):
        make_private_folder(place.sockets, place.account)
        return place.sockets
    parent = Path(tempfile.gettempdir()).resolve()
    if not (_is_usable(parent / "foliot-12345678") and place.account.may_enter(parent)):
        parent = Path("/tmp")  # noqa: S108 - everyone's on every Unix; the folder made in it is not
    folder = Path(tempfile.mkdtemp(prefix="foliot-", dir=parent))
    os.chown(folder, place.account.user_id, place.account.group_id)
    place.sockets.symlink_to(folder)
    return folder


def close_sockets_folder(place: Place) -> None:
    """Also clears away what an owner that was killed left behind.

    Only the socket and an empty folder go, wherever the link leads: it may not be ours.
    """
    folder = place.sockets.resolve()
    with suppress(OSError):
        _empty(folder)
        folder.rmdir()
    if place.sockets.is_symlink():
        place.sockets.unlink()


def _empty(folder: Path) -> None:
    for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
        (folder / name).unlink(missing_ok=True)


def _is_usable(folder: Path) -> bool:
    path = str(folder / SOCKET_NAME)
    return len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX and set(path) <= PLAIN
