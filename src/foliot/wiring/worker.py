"""The worker role: the user's handlers in processes of their own, served until told to leave.

The first signal lets what runs finish and hands the rest back; the second ends it at once.
"""

import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

import uvloop

from foliot import __version__
from foliot.core.model import TargetType
from foliot.runtime.clock import Clock, SystemClock
from foliot.runtime.health import Starting
from foliot.runtime.service import (
    beside,
    collect_rarely,
    end_within,
    run,
    served,
    stop_signals,
    until,
)
from foliot.runtime.source_files import stamp_of
from foliot.settings import PREFIX, Settings
from foliot.store.database import Database
from foliot.store.workers import WorkerProfile
from foliot.wiring.commands import allowed_programs
from foliot.wiring.connections import connection_options
from foliot.wiring.health import WorkerReadiness, serve_health
from foliot.wiring.hints import hearing_transport
from foliot.wiring.http_targets import Outside, deliverer, http_runner
from foliot.wiring.keys import opening_keyring
from foliot.wiring.migrated import wait_until_migrated
from foliot.worker.commands.runner import CommandRunner
from foliot.worker.discretion import DiscreetRunner
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.life import Orders
from foliot.worker.lines import Lines, open_lines
from foliot.worker.modules import ModuleNotImported
from foliot.worker.runners import Runners
from foliot.worker.secrets import SecretReader
from foliot.worker.service import WorkerService
from foliot.worker.tasks import Executor, Runner
from foliot.worker.waking import Ear

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
# Told twice, a worker does not wait longer than this for a database that does not answer.
STOP_SECONDS: Final = 5.0

Tell = Callable[[ModuleNotImported], None]


def serve_worker(
    settings: Settings, url: str, targets: Sequence[str], *, tell: Tell | None = None
) -> None:
    """Raises ModuleNotImported; with `tell`, says so and tries again when a file has changed."""
    collect_rarely()
    run(_Worker(settings, url, targets, tell).serve(), uvloop.new_event_loop)


class _Worker:
    def __init__(
        self, settings: Settings, url: str, targets: Sequence[str], tell: Tell | None
    ) -> None:
        self._settings = settings
        self._url = url
        self._targets = tuple(targets)
        self._tell = tell
        self._clock: Clock = SystemClock()

    async def serve(self) -> None:
        allowed_programs(self._settings)  # refused here if they cannot be read
        orders = Orders()

        def stop() -> None:
            orders.stop.set()
            end_within(STOP_SECONDS, status=1)

        with stop_signals(first=orders.leave.set, again=stop):
            async with AsyncExitStack() as stack:
                opened: list[Lines] = []
                readiness = Starting("the database has not been reached yet, or is not migrated")
                await stack.enter_async_context(serve_health(self._settings, readiness))
                await until(orders.leave, self._open(stack, opened))
                for lines in opened:
                    readiness.then = WorkerReadiness(lines.report)
                    await self._work(lines, orders)
        log.info("stopped")

    async def _open(self, stack: AsyncExitStack, opened: list[Lines]) -> None:
        options = connection_options(self._settings, "foliot worker")
        lines = await stack.enter_async_context(open_lines(self._url, options, self._clock))
        await wait_until_migrated(lines.beat, self._clock)
        opened.append(lines)

    async def _work(self, lines: Lines, orders: Orders) -> None:
        transport = hearing_transport(
            self._settings, self._url, lines.beat, self._clock, "foliot worker hints"
        )
        deliver = deliverer(self._outside(lines.deliver)).serve
        async with (
            beside(transport.run(), name="hints"),
            served(deliver, name="deliveries"),
        ):
            await self._serve(lines, orders, Ear(transport, self._settings.poll_seconds))

    async def _serve(self, lines: Lines, orders: Orders, ear: Ear) -> None:
        service = WorkerService(
            _profile(self._settings),
            lines,
            lambda: self._make_runner(lines),
            self._clock,
            drain_seconds=self._settings.drain_seconds,
            ear=ear,
        )
        while not orders.leave.is_set():
            before = stamp_of(self._targets)
            try:
                await service.run(orders)
            except ModuleNotImported as error:
                if self._tell is None:
                    raise
                self._tell(error)
                await until(orders.leave, self._wait_for_an_edit(before))
            else:
                return  # told to leave, or drained by an operator

    async def _wait_for_an_edit(self, before: object) -> None:
        while stamp_of(self._targets) == before:
            await self._clock.sleep(LOOK_SECONDS)

    def _make_runner(self, lines: Lines) -> Runner:
        handlers = self._make_handler_runner() if self._targets else None
        outside = self._outside(lines.report)
        others: dict[TargetType, Executor] = {TargetType.HTTP: http_runner(outside)}
        if programs := allowed_programs(self._settings):
            others[TargetType.COMMAND] = CommandRunner(programs, environ=os.environ)
        runners = Runners(handlers, others)
        reader = SecretReader(lines.report, outside.keyring, self._clock)
        return DiscreetRunner(runners, reader)

    def _outside(self, line: Database) -> Outside:
        return Outside(self._settings, line, self._clock, opening_keyring(self._settings))

    def _make_handler_runner(self) -> HandlerRunner:
        """Handlers learn no setting of ours: the database's address holds a password."""
        environ = {
            name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)
        }
        return HandlerRunner(self._targets, environ=environ)


def _profile(settings: Settings) -> WorkerProfile:
    host = socket.gethostname()
    return WorkerProfile(
        name=settings.worker_name or host,
        host=host,
        version=__version__,
        queues=settings.queues,
        capacity=settings.concurrency,
        labels=settings.labels,
        region=settings.region,
    )
