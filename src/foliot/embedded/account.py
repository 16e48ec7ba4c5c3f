"""Who PostgreSQL runs as. It refuses root, so root lends it an unprivileged user.

Folders above the data are never changed for it: whether that user may enter them is only asked.
"""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foliot.embedded.errors import NoUnprivilegedUser

# Where root keeps what that user must reach and may not reach where it is.
SHARED: Final = Path("/var/lib/foliot")

CANDIDATES: Final = ("foliot", "postgres", "nobody")


@dataclass(frozen=True)
class Account:
    user_id: int
    group_id: int

    @property
    def is_us(self) -> bool:
        return self.user_id == os.geteuid()

    def may_enter(self, folder: Path) -> bool:
        """By the mode bits of the folder and of all above it; ours are entered anyway."""
        if self.is_us:
            return True
        real = folder.resolve()
        return all(self._may_enter_one(part) for part in (real, *real.parents))

    def _may_enter_one(self, folder: Path) -> bool:
        facts = folder.stat()
        if facts.st_uid == self.user_id:
            return bool(facts.st_mode & stat.S_IXUSR)
        if facts.st_gid == self.group_id:
            return bool(facts.st_mode & stat.S_IXGRP)
        return bool(facts.st_mode & stat.S_IXOTH)


def choose_account(cluster: Path) -> Account:
    """Us; for root, whoever owns the cluster already, else the first candidate that exists."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    if cluster.is_dir() and (facts := cluster.stat()).st_uid != 0:
        return Account(facts.st_uid, facts.st_gid)
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise NoUnprivilegedUser(CANDIDATES)
