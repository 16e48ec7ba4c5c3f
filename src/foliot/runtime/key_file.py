"""Keys that are made once and kept in a file for its owner's eyes alone."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from foliot.runtime.chance import random_secret
from foliot.runtime.data_directory import DataDirectoryUnusable
from foliot.runtime.envelope import Keyring, new_key_line

KEY_FILE: Final = "api-key"
# Without this file, what the database holds of secrets is lost: it belongs in every backup.
SECRET_KEYS_FILE: Final = "secret-keys"  # noqa: S105 - the name of a file
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def provide_key(directory: Path) -> str:
    """The operator's key of the folder."""
    return _provide(directory, KEY_FILE, random_secret)


def provide_secret_keys(directory: Path) -> str:
    """The keys under which the folder's secrets are sealed, as the setting takes them."""
    return _checked(directory, _provide(directory, SECRET_KEYS_FILE, new_key_line))


def kept_secret_keys(directory: Path) -> str | None:
    """Those keys, if there are any."""
    path = directory / SECRET_KEYS_FILE
    return provide_secret_keys(directory) if path.exists() else None


def _checked(directory: Path, keys: str) -> str:
    try:
        Keyring.parse(keys)
    except ValueError:
        reason = f"{SECRET_KEYS_FILE}: it holds something else than id:key, a key a line"
        raise DataDirectoryUnusable(directory, reason) from None
    return keys


def _provide(directory: Path, name: str, make: Callable[[], str]) -> str:
    """An empty file, as a full disk leaves it, counts as none."""
    path = directory / name
    try:
        kept = _read(path)
        if kept:
            return kept
        path.unlink(missing_ok=True)
        key = make()
        fd = os.open(path, _NEW, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(f"{key}\n")
            file.flush()
            os.fsync(file.fileno())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise DataDirectoryUnusable(directory, f"{name}: {reason or error}") from None
    return key


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
