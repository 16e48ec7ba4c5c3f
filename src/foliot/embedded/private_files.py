"""Files and folders that only their owner may read, written whole or not at all.

Root also writes into folders of the unprivileged user, so nothing here follows a symbolic link:
a new file is made under a name nobody else has, then renamed into place.
"""

import os
from pathlib import Path

from foliot.embedded.account import Account
from foliot.runtime.chance import random_name, random_secret


def make_private_folder(folder: Path, account: Account) -> None:
    """Makes the folder, or takes it as it is if it is there."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return
    if not account.is_us:
        os.chown(folder, account.user_id, account.group_id)


def make_passable_folder(folder: Path) -> None:
    """Others may pass through to what is theirs inside, and see nothing else."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711)


def write_private_file(path: Path, text: str, account: Account | None = None) -> None:
    """Readable by us, or by the account if one is given."""
    draft = path.with_name(f".{path.name}.{random_name()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(
            os.open(draft, flags, 0o600), "w", encoding="utf-8", errors="surrogateescape"
        ) as file:
            if account is not None and not account.is_us:
                os.fchown(file.fileno(), account.user_id, account.group_id)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def read_or_make_secret(path: Path) -> str:
    """The password kept in the file; a new random one if there is none yet, or nothing in it."""
    kept = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    if kept:
        return kept
    secret = random_secret()
    write_private_file(path, secret + "\n")
    return secret
