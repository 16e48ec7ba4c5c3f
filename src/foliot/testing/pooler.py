"""pgbouncer in transaction mode in front of a throw-away server, for who asks for it.

`FOLIOT_TEST_POOLER=pgbouncer` lets every migrated database be reached through it: each transaction,
and each statement outside of one, may find itself on another connection of the server.
"""

import contextlib
import os
import shutil
import signal
from pathlib import Path
from typing import Final

from foliot.embedded.account import Account
from foliot.embedded.child import Child
from foliot.embedded.private_files import write_private_file
from foliot.runtime.clock import SystemClock
from foliot.store.connecting import ConnectionOptions, wait_until_reachable

CHOICE: Final = "FOLIOT_TEST_POOLER"
PGBOUNCER: Final = "pgbouncer"
PORT: Final = 6432
READY_SECONDS: Final = 30.0
# Debian keeps it where an ordinary user's PATH does not look.
PLACES: Final = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))

# The server has 100 connections and each test a database of its own: what is idle goes soon. Who
# comes first is not who goes first: connections are taken in turn, so that a client that counted
# on meeting its own again would notice.
SETTINGS: Final = """
[databases]
* = host={folder} port=5432
[pgbouncer]
listen_port = {port}
unix_socket_dir = {folder}
unix_socket_mode = 0700
auth_type = trust
auth_file = {folder}/pooler-users
pool_mode = transaction
server_round_robin = 1
server_lifetime = 60
server_idle_timeout = 1
server_login_retry = 1
autodb_idle_timeout = 2
default_pool_size = 20
max_db_connections = 20
max_client_conn = 500
query_wait_timeout = 20
"""
USERS: Final = '"foliot" ""\n"postgres" ""\n'


def is_wanted() -> bool:
    choice = os.environ.get(CHOICE) or "none"
    if choice not in (PGBOUNCER, "none"):
        raise RuntimeError(f"{CHOICE} is {choice!r}: use {PGBOUNCER}, or unset it")
    return choice == PGBOUNCER


class Pooler:
    """A process next to the server, in the server's folder; it ends when we do."""

    def __init__(self, folder: Path, account: Account) -> None:
        program = shutil.which(PGBOUNCER, path=PLACES)
        if program is None:
            raise RuntimeError(f"no pgbouncer on this machine (install it, or unset {CHOICE})")
        settings, users = folder / "pooler-settings", folder / "pooler-users"
        write_private_file(settings, SETTINGS.format(folder=folder, port=PORT), account)
        write_private_file(users, USERS, account)
        log = os.open(folder / "pooler-log", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            self._child = Child([program, str(settings)], account, log)
        finally:
            os.close(log)

    async def wait_until_ready(self, url: str) -> None:
        options = ConnectionOptions(prepare=False)
        await wait_until_reachable(
            url, SystemClock(), patience_seconds=READY_SECONDS, options=options
        )

    async def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child.pid, signal.SIGKILL)
        await self._child.wait()
