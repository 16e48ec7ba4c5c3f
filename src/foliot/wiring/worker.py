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
from foliot.runtime.clock import Clock, SystemClock
from foliot.runtime.service import end_within, run, stop_signals, until
from foliot.runtime.source_files import stamp_of
from foliot.settings import PREFIX, Settings
from foliot.store.workers import WorkerProfile
from foliot.wiring.connections import connection_options
from foliot.wiring.migrated import wait_until_migrated
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.life import Orders
from foliot.worker.lines import Lines, open_lines
from foliot.worker.modules import ModuleNotImported
from foliot.worker.service import WorkerService

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
# Told twice, a worker does not wait longer than this for a database that does not answer.
STOP_SECONDS: Final = 5.0

Tell = Callable[[ModuleNotImported], None]


def serve_worker(
    settings: Settings, url: str, targets: Sequence[str], *, tell: Tell | None = None
) -> None:
    """Raises ModuleNotImported; with `tell`, says so and tries again when a file has changed."""
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
        orders = Orders()

        def stop() -> None:
            orders.stop.set()
            end_within(STOP_SECONDS, status=1)

        with stop_signals(first=orders.leave.set, again=stop):
            async with AsyncExitStack() as stack:
                opened: list[Lines] = []
                await until(orders.leave, self._open(stack, opened))
                for lines in opened:
                    await self._work(lines, orders)
        log.info("stopped")

    async def _open(self, stack: AsyncExitStack, opened: list[Lines]) -> None:
        options = connection_options(self._settings, "foliot worker")
        lines = await stack.enter_async_context(open_lines(self._url, options, self._clock))
        await wait_until_migrated(lines.beat, self._clock)
        opened.append(lines)

    async def _work(self, lines: Lines, orders: Orders) -> None:
        service = WorkerService(
            _profile(self._settings),
            lines,
            self._make_runner,
            self._clock,
            drain_seconds=self._settings.drain_seconds,
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

    async def _wait_for_an_edit(self, before: object) -> None:
        while stamp_of(self._targets) == before:
            await self._clock.sleep(LOOK_SECONDS)

    def _make_runner(self) -> HandlerRunner:
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
