"""Everything on one machine: a database of our own, the roles as child processes, one supervisor.

Roles stop before the database they lean on. The supervisor never imports the user's code. What
runs where is written to `server.json` in the data directory and told in a few lines.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from socket import socket
from typing import Final

from foliot.embedded import EmbeddedServer
from foliot.runtime.child import GRACE_SECONDS, ChildProcess
from foliot.runtime.clock import Clock, SystemClock
from foliot.runtime.data_directory import (
    DataDirectoryUnusable,
    RunningRole,
    RunningServer,
    owned,
    read_server_file,
    remove_server_file,
    write_server_file,
)
from foliot.runtime.key_file import provide_key
from foliot.runtime.lifeline import Lifeline
from foliot.runtime.listener import PortInUse, listen, url_of
from foliot.runtime.probe import not_ready_because
from foliot.runtime.service import stop_signals, until
from foliot.runtime.supervisor import Died, NotStarted, RoleEvent, Started, Supervisor
from foliot.settings import Settings, file_variable, variable
from foliot.store.connecting import growing_delays, wait_until_reachable
from foliot.store.errors import CommitUnknown, DatabaseUnreachable
from foliot.store.migrate import migrate
from foliot.store.url import without_password
from foliot.wiring.callbacks import callback_allow, local_openings
from foliot.wiring.commands import allowed_programs
from foliot.wiring.connections import connection_options
from foliot.wiring.greeting import Facts, greeting
from foliot.wiring.keys import SECRET_KEYS, local_keys

log = logging.getLogger(__name__)

URL: Final = variable("database_url")
URL_FILE: Final = file_variable("database_url")
POOLER: Final = variable("database_pooler")
DIRECT: Final = variable("database_direct_url")
DIRECT_FILE: Final = file_variable("database_direct_url")
METRICS_PORT: Final = variable("metrics_port")
KEY: Final = variable("api_key")
KEY_FILE: Final = file_variable("api_key")
SECRET_KEYS_FILE: Final = file_variable("secret_keys")
# What no child knows unless it is told.
SECRET: Final = frozenset(
    {URL, URL_FILE, DIRECT, DIRECT_FILE, KEY, KEY_FILE, SECRET_KEYS, SECRET_KEYS_FILE}
)
POLL_SECONDS: Final = 0.05
# After a supervisor was killed, its roles need a moment to notice and to let the port go.
LEFTOVER_SECONDS: Final = 3.0
SLOW_AFTER_SECONDS: Final = 15.0


async def run_until_stopped(
    settings: Settings, handlers: Sequence[str], *, say: Callable[[str], None]
) -> None:
    """Returns after a clean stop; raises what kept it from starting."""
    callback_allow(settings)  # refused here if it cannot be read, not by each role in turn
    allowed_programs(settings)
    clock = SystemClock()
    with owned(settings.data_dir), closing(await _bind(settings, clock)) as listener:
        await _LocalServer(settings, handlers, listener, clock, _steadfast(say)).run()
    _steadfast(say)("stopped")


async def _bind(settings: Settings, clock: Clock) -> socket:
    killed = read_server_file(settings.data_dir) is not None
    remove_server_file(settings.data_dir)
    deadline = clock.monotonic() + (LEFTOVER_SECONDS if killed else 0)
    while True:
        try:
            return listen(settings.host, settings.port)
        except PortInUse:
            if clock.monotonic() >= deadline:
                raise
        await clock.sleep(POLL_SECONDS)


def _steadfast(say: Callable[[str], None]) -> Callable[[str], None]:
    """A terminal that was closed is no reason to stop in disorder."""

    def say_if_heard(line: str) -> None:
        with suppress(OSError):
            say(line)

    return say_if_heard


class _LocalServer:
    def __init__(
        self,
        settings: Settings,
        handlers: Sequence[str],
        listener: socket,
        clock: Clock,
        say: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._handlers = tuple(handlers)
        self._listener = listener
        self._url = url_of(listener)
        self._clock = clock
        self._say = say
        self._database_url = ""
        self._postgres: EmbeddedServer | None = None
        self._supervisor = Supervisor(clock, self._hear)

    async def run(self) -> None:
        stop = asyncio.Event()
        with (
            closing(Lifeline.open()) as self._lifeline,
            stop_signals(first=stop.set, again=self._supervisor.kill),
        ):
            try:
                async with self._supervisor:
                    await until(stop, self._work())
                    self._say("stopping (once more to stop at once) …")
                    self._listener.close()
            finally:
                remove_server_file(self._settings.data_dir)

    async def _work(self) -> None:
        self._database_url = await self._provide_database()
        await self._migrate()
        # Secrets go by the environment, which `ps` does not show.
        environ = {**self._database(), **local_openings(self._settings)}
        if self._settings.metrics_port is not None:
            environ[METRICS_PORT] = "0"  # one port cannot be that of several roles
        opening = {**environ, **local_keys(self._settings)}  # for those that seal or open
        await self._start_api(opening)
        scheduler = self._child(["server", "--role", "scheduler"], environ=environ)
        await self._supervisor.start("scheduler", scheduler)
        await self._wait_until_ready()
        await self._start_worker(opening)
        for line in greeting(self._facts()):
            self._say(line)
        await asyncio.Event().wait()

    async def _start_api(self, environ: Mapping[str, str]) -> None:
        arguments = ["server", "--role", "api", "--listen-fd", str(self._listener.fileno())]
        given = self._settings.api_key
        key = given.get_secret_value() if given else provide_key(self._settings.data_dir)
        api = self._child(
            arguments,
            environ={**environ, KEY: key},
            pass_fds=[self._listener.fileno()],
        )
        await self._supervisor.start("api", api)

    async def _start_worker(self, environ: Mapping[str, str]) -> None:
        """A module that does not import is the worker's to tell; nothing else stops for it."""
        arguments = ["worker", "run", "--patient", *self._handlers]
        if "queues" not in self._settings.model_fields_set:
            arguments += ["--queues", "*"]
        grace_seconds = self._settings.drain_seconds + GRACE_SECONDS
        worker = self._child(arguments, environ=environ, grace_seconds=grace_seconds)
        await self._supervisor.start("worker", worker)

    async def _provide_database(self) -> str:
        if self._settings.database_url is not None:
            return self._settings.database_url.get_secret_value()
        self._postgres = EmbeddedServer(self._settings.data_dir)
        await self._supervisor.start("postgres", self._postgres)
        return self._postgres.url

    def _database(self) -> dict[str, str]:
        """To a database of our own the way is straight, whatever the settings say of another."""
        if self._postgres is not None:
            return {URL: self._database_url, POOLER: "none"}
        direct = self._settings.database_direct_url
        told = {} if direct is None else {DIRECT: direct.get_secret_value()}
        return {URL: self._database_url, POOLER: self._settings.database_pooler, **told}

    async def _migrate(self) -> None:
        """However often the database goes away meanwhile: a migration is done whole or not at all,
        and which ones are done is read again each time."""
        for delay in growing_delays():
            options = connection_options(self._settings, "foliot up")
            await wait_until_reachable(self._database_url, self._clock, options=options)
            try:
                await migrate(self._database_url, self._clock)
            except (DatabaseUnreachable, CommitUnknown) as loss:
                shown = without_password(self._database_url)
                log.warning("database %s was lost: %s; trying again", shown, loss.reason)
            else:
                return
            await self._clock.sleep(delay)

    def _child(
        self,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        grace_seconds: float = GRACE_SECONDS,
    ) -> ChildProcess:
        """Knows a secret only if `environ` says it."""
        kept = {key: value for key, value in os.environ.items() if key.upper() not in SECRET}
        lifeline = ["--lifeline-fd", str(self._lifeline.read_fd)]
        return ChildProcess(
            # -P: a file in the working directory must not stand in for a module of ours.
            [sys.executable, "-P", "-m", "foliot", *arguments, *lifeline],
            environ=kept | dict(environ or {}),
            pass_fds=[*pass_fds, self._lifeline.read_fd],
            grace_seconds=grace_seconds,
        )

    async def _wait_until_ready(self) -> None:
        slow_at = self._clock.monotonic() + SLOW_AFTER_SECONDS
        while reason := await not_ready_because(self._url):
            if self._clock.monotonic() > slow_at:
                self._say(f"still waiting for {self._url}: {reason}")
                slow_at = self._clock.monotonic() + SLOW_AFTER_SECONDS
            await self._clock.sleep(POLL_SECONDS)

    def _hear(self, event: RoleEvent) -> None:
        match event:
            case Died(role, status, delay):
                self._say(f"{role} {_ending(status)}; starting it again in {delay:g} s")
            case NotStarted(role, reason, delay):
                self._say(f"{role} does not start: {reason}; trying again in {delay:g} s")
            case Started(role, pid, restarts):
                if restarts:
                    self._say(f"{role} runs again (process {pid})")
                self._write_server_file()

    def _write_server_file(self) -> None:
        if not self._database_url:
            return
        roles = tuple(RunningRole(role.name, role.process.pid) for role in self._supervisor.roles)
        server = RunningServer(self._url, os.getpid(), self._database_url, roles)
        try:
            write_server_file(self._settings.data_dir, server)
        except DataDirectoryUnusable as error:
            self._say(f"{error}; server.json is out of date")

    def _facts(self) -> Facts:
        if self._postgres is None:
            database = without_password(self._database_url)
        else:
            database = f"embedded, data in {self._postgres.home.resolve()}"
        own_key = self._settings.api_key is None
        return Facts(self._url, self._settings.data_dir, database, self._handlers, own_key)


def _ending(status: int) -> str:
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"
