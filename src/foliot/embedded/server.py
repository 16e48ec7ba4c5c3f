"""The embedded PostgreSQL as one thing to start, stop and start again.

It is ready when a connection really works, never because a file or a log line says so. The
socket's address and the passwords stay the same from the first start to the stop, so that those
who were told the URL need not be told again after a crash.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

import asyncpg

from foliot.embedded.child import Child
from foliot.embedded.cluster import check_version, clear_drafts, make_cluster
from foliot.embedded.configuration import CLIENT_RULES, PORT, configuration
from foliot.embedded.errors import (
    DirectoryInUse,
    DiskFull,
    NotReadyInTime,
    NotStarted,
    SecretRefused,
    disk_errors_named,
)
from foliot.embedded.failure import failure_of, is_still_held
from foliot.embedded.installation import Installation, installation_for
from foliot.embedded.leftovers import end_leftovers
from foliot.embedded.place import (
    Place,
    close_sockets_folder,
    find_place,
    make_directory,
    open_sockets_folder,
)
from foliot.embedded.private_files import read_or_make_secret, write_private_file
from foliot.embedded.roles import DATABASE, ROLE, provide_role
from foliot.runtime.clock import SystemClock
from foliot.runtime.owner_lock import OwnedByAnother, OwnerLock

SUPERUSER: Final = "postgres"

# Long enough for the recovery from a crash at full speed.
READY_WITHIN_SECONDS: Final = 120.0
CONNECT_SECONDS_MAX: Final = 10.0
POLL_SECONDS: Final = 0.02

NOT_YET: Final = (
    OSError,
    asyncpg.CannotConnectNowError,
    asyncpg.PostgresConnectionError,
    asyncpg.TooManyConnectionsError,
)


class EmbeddedServer:
    """Owns the data directory from the first start to the stop; a crash between is no stop."""

    def __init__(
        self, directory: Path, *, version: int = 18, settings: Mapping[str, str] | None = None
    ) -> None:
        self._directory = directory.absolute()
        self._version = version
        self._settings = dict(settings or {})
        self._clock = SystemClock()
        self._locks: list[OwnerLock] = []
        self._place: Place | None = None
        self._sockets: Path | None = None
        self._passwords: dict[str, str] = {}
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        running = self._child is not None and self._child.status is None
        return self._child.pid if self._child is not None and running else None

    @property
    def url(self) -> str:
        """For Foliot itself."""
        return self._url(ROLE, DATABASE)

    @property
    def admin_url(self) -> str:
        """For tests and maintenance: the superuser."""
        return self._url(SUPERUSER, SUPERUSER)

    @property
    def home(self) -> Path:
        """Where the cluster and its logs are: the data directory, or where root had to put it."""
        if self._place is None:
            raise NotStarted(self._directory)
        return self._place.home

    async def start(self) -> None:
        if self.pid is not None:
            return
        is_first = not self._locks
        with disk_errors_named(self._directory):
            try:
                await self._start()
            except BaseException:
                await self._end_child()
                if is_first:
                    self._let_go()
                raise

    async def stop(self) -> None:
        await self._end_child()
        self._let_go()

    def kill(self) -> None:
        """For those who will not wait for `stop`: it recovers by itself at the next start."""
        if self._child is not None and self.pid is not None:
            self._child.end_at_once()

    async def wait(self) -> int:
        """The exit status; a negative number is the signal that ended it."""
        if self._child is None:
            raise NotStarted(self._directory)
        return await self._child.wait()

    async def _start(self) -> None:
        place = self._place = self._own_place()
        if place.cluster.exists():
            check_version(place, self._version)
        for role in (ROLE, SUPERUSER):
            self._passwords[role] = read_or_make_secret(place.secret(role))
        installation = await asyncio.to_thread(installation_for, place.account, self._version)
        clear_drafts(place)
        if place.cluster.exists():
            await end_leftovers(place.cluster, self._clock)
        else:
            password = self._passwords[SUPERUSER]
            durable = self._settings.get("fsync", "on") == "on"
            await make_cluster(place, installation, password=password, durable=durable)
        self._sockets = open_sockets_folder(place, again=self._sockets)
        self._configure(place, self._sockets)
        await self._run_until_ready(place, installation)

    def _own_place(self) -> Place:
        """Nobody else's from here on: neither the directory, nor the cluster if it lies elsewhere,
        to which a copy of the directory points as well."""
        directory = self._directory.resolve()
        is_first = not self._locks
        if is_first:
            make_directory(self._directory)
            self._locks.append(_own(directory))
        place = find_place(directory)
        if is_first and place.home != directory:
            self._locks.append(_own(place.home))
        return place

    def _configure(self, place: Place, sockets: Path) -> None:
        text = configuration(self._settings, sockets=sockets, logs=place.logs)
        write_private_file(place.cluster / "postgresql.conf", text, place.account)
        write_private_file(place.cluster / "pg_hba.conf", CLIENT_RULES, place.account)

    async def _run_until_ready(self, place: Place, installation: Installation) -> None:
        deadline = self._clock.monotonic() + READY_WITHIN_SECONDS
        child = self._launch(place, installation)
        while not await self._is_ready(place):
            if self._clock.monotonic() > deadline:
                raise NotReadyInTime(READY_WITHIN_SECONDS, place.logs)
            await self._clock.sleep(POLL_SECONDS)
            if child.status is not None:
                if not is_still_held(place):
                    raise failure_of(place, child.status)
                await end_leftovers(place.cluster, self._clock)
                child = self._launch(place, installation)

    def _launch(self, place: Place, installation: Installation) -> Child:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        output_fd = os.open(place.startup_log, flags, 0o600)
        try:
            command = [str(installation.postgres), "-D", str(place.cluster)]
            self._child = Child(command, place.account, output_fd)
        finally:
            os.close(output_fd)
        return self._child

    async def _is_ready(self, place: Place) -> bool:
        """As the superuser, for whom PostgreSQL keeps connections free whatever others do."""
        try:
            superuser = await asyncpg.connect(self.admin_url, timeout=CONNECT_SECONDS_MAX)
            try:
                await provide_role(superuser, self._passwords[ROLE])
            finally:
                await superuser.close()
        except asyncpg.InvalidPasswordError:
            raise SecretRefused(place.secret(SUPERUSER)) from None
        except asyncpg.DiskFullError:
            raise DiskFull(place.home) from None
        except NOT_YET:
            return False
        return True

    async def _end_child(self) -> None:
        if self._child is not None and self._child.status is None:
            await self._child.end()

    def _let_go(self) -> None:
        if self._place is not None and self._sockets is not None:
            close_sockets_folder(self._place)
            self._sockets = None
        while self._locks:
            self._locks.pop().release()

    def _url(self, role: str, database: str) -> str:
        if self._sockets is None:
            raise NotStarted(self._directory)
        password = quote(self._passwords[role], safe="")
        # The port is said, because clients otherwise take it from their environment.
        query = urlencode({"host": str(self._sockets), "port": PORT}, safe="/")
        return f"postgresql://{role}:{password}@/{database}?{query}"


def _own(directory: Path) -> OwnerLock:
    try:
        return OwnerLock.take(directory / "lock")
    except OwnedByAnother as owner:
        raise DirectoryInUse(directory, owner.pid) from None
