"""A key that is made once and kept in a file for its owner's eyes alone."""

import os
from pathlib import Path
from typing import Final

from foliot.runtime.chance import random_secret
from foliot.runtime.data_directory import DataDirectoryUnusable

KEY_FILE: Final = "api-key"
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def provide_key(directory: Path) -> str:
    """The key of the folder. An empty file, as a full disk leaves it, counts as none."""
    path = directory / KEY_FILE
    try:
        kept = _read(path)
        if kept:
            return kept
        path.unlink(missing_ok=True)
        key = random_secret()
        fd = os.open(path, _NEW, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(f"{key}\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise DataDirectoryUnusable(directory, f"{KEY_FILE}: {reason or error}") from None
    return key


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
