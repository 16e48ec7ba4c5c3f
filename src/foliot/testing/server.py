"""A PostgreSQL to throw away: fast because it may lose everything, gone when the tests are.

`FOLIOT_TEST_POSTGRES` chooses it: `18` (default) and `16` come from the wheel, `system` is the
newest of the machine's own under /usr/lib/postgresql. `FOLIOT_TEST_POOLER` puts a pooler before it.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from foliot.embedded.account import choose_account
from foliot.embedded.child import Child
from foliot.embedded.installation import installation_for
from foliot.runtime.clock import SystemClock
from foliot.runtime.owner_lock import OwnedByAnother, OwnerLock
from foliot.store.connecting import wait_until_reachable
from foliot.testing import pooler

CHOICE: Final = "FOLIOT_TEST_POSTGRES"
SYSTEM: Final = Path("/usr/lib/postgresql")
PREFIX: Final = "foliot-test-"
LOCK: Final = "lock"
READY_SECONDS: Final = 60.0

SETTINGS: Final = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "shared_buffers": "32MB",
    "max_connections": "100",
    "jit": "off",
    # With hundreds of databases it would do nothing but go round; a test that needs statistics
    # takes them itself.
    "autovacuum": "off",
    "timezone": "UTC",
    "lc_messages": "C",
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
}


class ThrowawayServer:
    """One cluster in a folder of its own, over a unix socket; nobody else can enter the folder."""

    def __init__(self, choice: str | None = None) -> None:
        self._choice = choice or os.environ.get(CHOICE) or "18"
        self._folder: Path | None = None
        self._lock: OwnerLock | None = None
        self._child: Child | None = None
        self._pooler: pooler.Pooler | None = None

    def url(self, database: str = "foliot", role: str = "foliot") -> str:
        return f"postgresql://{role}@/{database}?host={self._folder}&port=5432"

    def pooled_url(self, database: str, role: str = "foliot") -> str:
        """Through the pooler, if there is one."""
        port = 5432 if self._pooler is None else pooler.PORT
        return f"postgresql://{role}@/{database}?host={self._folder}&port={port}"

    @property
    def admin_url(self) -> str:
        """The superuser, who owes nothing to anybody's limits."""
        return self.url("postgres", "postgres")

    async def start(self) -> None:
        remove_leftovers(Path(tempfile.gettempdir()))
        self._folder = folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = OwnerLock.take(folder / LOCK)
        account = choose_account(folder / "data")
        os.chown(folder, account.user_id, account.group_id)
        programs = (
            newest_system_programs()
            if self._choice == "system"
            else installation_for(account, int(self._choice)).programs
        )
        initdb = [str(programs / "initdb"), "-D", str(folder / "data"), "-U", "postgres"]
        initdb += ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        making = Child(initdb, account, subprocess.PIPE)
        if await making.wait() != 0:
            raise RuntimeError(f"initdb failed: {making.output.decode(errors='replace')}")
        settings = SETTINGS | {"unix_socket_directories": str(folder)}
        postgres = [str(programs / "postgres"), "-D", str(folder / "data")]
        postgres += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            self._child = Child(postgres, account, log)
        finally:
            os.close(log)
        await wait_until_reachable(self.admin_url, SystemClock(), patience_seconds=READY_SECONDS)
        if pooler.is_wanted():
            self._pooler = pooler.Pooler(folder, account)
            await self._pooler.wait_until_ready(self.pooled_url("postgres", "postgres"))

    async def stop(self) -> None:
        if self._pooler is not None:
            await self._pooler.stop()
        if self._child is not None:
            # At once, without a checkpoint: nobody reads this cluster again.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGQUIT)
            await self._child.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.release()


def newest_system_programs() -> Path:
    found = sorted(SYSTEM.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise RuntimeError(f"no PostgreSQL under {SYSTEM} (install one, or unset {CHOICE})")
    return found[-1].parent


def remove_leftovers(parent: Path, prefix: str = PREFIX) -> None:
    """Folders of sessions that were killed, whose servers ended with them.

    The lock tells: a living session holds it, and no number of a process could be mistaken.
    """
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError, OwnedByAnother):
            # A folder without a lock is one that another session is just making.
            if (folder / LOCK).is_file():
                lock = OwnerLock.take(folder / LOCK)
                shutil.rmtree(folder, ignore_errors=True)
                lock.release()
